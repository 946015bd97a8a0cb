import Glibc
public import Media

/// Selects the camera to open.
public enum CameraSelection: Hashable, Sendable {
  /// The first usable camera. After one was opened, the search is for that camera.
  case first
  /// A device node or a link to one. The link is followed at each attempt.
  case path(String)
}

/// Opens a camera for a ``ReconnectingCamera`` and finds the camera again after a loss. One thread at a time uses it.
public protocol CameraFinding<Camera>: AnyObject, Sendable {
  /// The type of camera that the finder opens.
  associatedtype Camera: VideoSource

  /// Notes that the camera was lost. The caller calls it before the search.
  func noteLoss()
  /// Returns the camera, opened but not started; nil if the camera is absent.
  ///
  /// - Throws: if the camera is present and cannot be opened.
  func find() throws -> Camera?
  /// Returns the warnings about `camera`, which was found last.
  func warnings(of camera: Camera) -> [String]
}

/// Opens a V4L2 camera. Finds the camera again by its link or by its identity (maker, model, serial number, USB port,
/// name).
public final class CameraFinder: CameraFinding, @unchecked Sendable {
  // Sendable: one thread at a time uses it, as its protocol says.

  private let selection: CameraSelection
  private let request: FormatRequest
  private let fixedOrientation: Orientation?
  private let controls: CameraControls?
  /// `true` if the path is a link, which is followed at each attempt.
  private let followsLink: Bool
  /// The traits of the camera to find; nil before a camera was opened, or if sysfs does not show the camera.
  private var traits: CameraTraits?
  /// The size, rate and format of the camera that was opened first. Each later opening requests them again.
  private var agreed: FormatRequest?
  /// The link to the encoder that passes the camera's own H.264 on; nil if none does. Set before the first opening.
  package var passThrough: PassThrough?

  /// Creates a finder.
  ///
  /// - Parameters:
  ///   - selection: the camera to open.
  ///   - request: the request for the first opening.
  ///   - fixedOrientation: see ``V4L2Camera/init(path:request:poolCapacity:fixedOrientation:compensatesMounting:)``.
  ///   - controls: the object that sets the camera's controls at each opening.
  public init(
    _ selection: CameraSelection, request: FormatRequest, fixedOrientation: Orientation?,
    controls: CameraControls? = nil
  ) {
    self.controls = controls
    self.selection = selection
    self.request = request
    self.fixedOrientation = fixedOrientation
    followsLink = if case .path(let path) = selection { Self.isLink(path) } else { false }
  }

  /// Notes the loss; see ``CameraFinding``.
  public func noteLoss() {
    guard let identity = traits?.identity else { return }
    traits = identity.distinguishing(among: VideoNode.all())
  }

  /// Returns the camera, opened but not started; nil if the camera is absent.
  ///
  /// - Throws: ``CaptureError`` if the camera is present and cannot be opened.
  public func find() throws -> V4L2Camera? {
    switch selection {
    case .path(let path) where traits == nil || followsLink: return try openIfThere(path)
    case .path(let path):
      if let camera = try findAgain() { return camera }
      // The path now names something other than a device: the user has to know.
      if let kind = Self.kind(of: path), kind != S_IFCHR { throw CaptureError.notVideo(path: path) }
      return nil
    case .first:
      guard traits == nil else { return try findAgain() }
      let cameras = CameraList()
      if let camera = cameras.firstUsable { return try openIfThere(camera.path) }
      if let obstacle = cameras.passedOver.first?.obstacle { throw obstacle }
      return nil
    }
  }

  /// Returns the camera's warnings; see ``CameraFinding``.
  public func warnings(of camera: V4L2Camera) -> [String] { camera.warnings.map(\.description) }

  private func findAgain() throws -> V4L2Camera? {
    var refusal: CaptureError?
    for node in traits?.matches(in: VideoNode.all()) ?? [] {
      do {
        if let camera = try openIfThere(node.path) { return camera }
      } catch let error as CaptureError {
        // Another node of the same device, such as its metadata node.
        if case .notCapture = error { continue }
        if refusal == nil { refusal = error }
      }
    }
    if let refusal { throw refusal }
    return nil
  }

  private func openIfThere(_ path: String) throws -> V4L2Camera? {
    do {
      return try open(path)
    } catch CaptureError.noDevice {
      return nil
    } catch CaptureError.disconnected {
      return nil
    }
  }

  /// Opens the camera at `path` with the settings of the first opening, or the nearest available ones.
  ///
  /// - Throws: ``CaptureError``, `FramePoolError` or `ConversionError`.
  public func open(_ path: String) throws -> V4L2Camera {
    var refusal: CaptureError?
    let camera = try openCoded(path, &refusal) ?? openForSamples(path)
    let identity = camera.systemDirectory.flatMap(CameraIdentity.init(directory:))
    passThrough?.camera = .init(base: camera.base, offersSamples: camera.offersSamples, identity: identity?.text)
    // The refusal is of this camera, and not of the one before.
    if let refusal { passThrough?.refuse("\(refusal)") }
    if agreed == nil {
      agreed = camera.agreement
    } else if let error = camera.missingSignal {
      throw error
    }
    // A camera that was unplugged meanwhile has no identity in sysfs. The known traits stay, or another camera would
    // match.
    if let identity { traits = identity.distinguishing(among: VideoNode.all()) }
    controls?.attach(camera.device)
    return camera
  }

  /// Opens the camera for its own H.264. Returns nil if samples are wanted, or if a camera that took the place of the
  /// first one does not offer H.264 of the stream's size and rate.
  ///
  /// - Parameter refusal: gets the reason in that case.
  /// - Throws: as ``open(_:)``.
  private func openCoded(_ path: String, _ refusal: inout CaptureError?) throws -> V4L2Camera? {
    guard let passThrough, !passThrough.opensForSamples else { return nil }
    var coded = agreed ?? request
    coded.takesH264 = true
    do {
      return try V4L2Camera(path: path, request: coded, fixedOrientation: fixedOrientation)
    } catch let error as CaptureError {
      guard agreed != nil, error.isDisagreement else { throw error }
      refusal = error
      return nil
    }
  }

  private func openForSamples(_ path: String) throws -> V4L2Camera {
    var wanted = agreed ?? request
    // The format of the first camera, unless that was its own H.264.
    if passThrough != nil { wanted.format = request.format }
    do {
      return try V4L2Camera(path: path, request: wanted, fixedOrientation: fixedOrientation)
    } catch let error as CaptureError {
      guard agreed != nil, error.isDisagreement else { throw error }
      wanted.isSizeExplicit = false
      wanted.isRateExplicit = false
      wanted.format = request.format
      return try V4L2Camera(path: path, request: wanted, fixedOrientation: fixedOrientation)
    }
  }

  /// Returns `true` if `path` is not the kernel's own name of a device.
  private static func isLink(_ path: String) -> Bool {
    var status = stat()
    if lstat(path, &status) == 0, status.st_mode & S_IFMT == S_IFLNK { return true }
    return CameraList.number(of: String(path.split(separator: "/").last ?? "")) == nil
  }

  private static func kind(of path: String) -> mode_t? {
    var status = stat()
    return stat(path, &status) == 0 ? status.st_mode & S_IFMT : nil
  }
}

extension CaptureError {
  /// `true` if the camera is present but does not offer the requested format, size or rate.
  var isDisagreement: Bool {
    switch self {
    case .formatNotOffered, .sizeNotOffered, .rateNotOffered, .implausible: true
    default: false
    }
  }

  /// The reason in words that every viewer may see: without paths and programs.
  package var remark: String {
    switch self {
    case .busy: "in use by another program"
    case .noPermission: "no permission to open it"
    case .notVideo, .notCapture: "not a camera"
    case .sourceChanged(_, _, nil): "no signal at its input"
    case .sourceChanged: "another signal"
    case .stalled: "it delivers no picture"
    default: "it cannot be opened"
    }
  }
}
