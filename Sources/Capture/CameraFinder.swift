import Glibc
public import Media

/// Which camera is wanted.
public enum CameraSelection: Hashable, Sendable {
  /// The first that can be used; once one was, that one.
  case first
  /// A device node, or a link to one, which is followed each time.
  case path(String)
}

/// Whoever opens a camera for a ``ReconnectingCamera``, and finds it again. Used by one thread at a time.
public protocol CameraFinding<Camera>: AnyObject, Sendable {
  /// The cameras that it opens.
  associatedtype Camera: VideoSource

  /// The camera was lost; before it is looked for.
  func noteLoss()
  /// The camera, opened but not started; nil where it is not there.
  ///
  /// - Throws: where it is there and cannot be opened.
  func find() throws -> Camera?
  /// What is odd about the one that was found last.
  func warnings(of camera: Camera) -> [String]
}

/// Opens a V4L2 camera, and finds it again by its link, or by what it says of itself (maker, model, serial number, USB
/// port, name).
public final class CameraFinder: CameraFinding, @unchecked Sendable {
  // Sendable: used by one thread at a time, as its protocol has it.

  private let selection: CameraSelection
  private let request: FormatRequest
  private let fixedOrientation: Orientation?
  private let controls: CameraControls?
  /// Whether the path is a link, and followed each time.
  private let followsLink: Bool
  /// The camera that is looked for; nil before the first was opened, or where sysfs does not show it.
  private var traits: CameraTraits?
  /// Size, rate and format of the camera that was opened first, which are asked for again.
  private var agreed: FormatRequest?

  /// - Parameters:
  ///   - selection: which camera.
  ///   - request: what is asked of it when it is opened first.
  ///   - fixedOrientation: as ``V4L2Camera/init(path:request:poolCapacity:fixedOrientation:compensatesMounting:)``.
  ///   - controls: what sets its controls, each time that it is opened.
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

  /// As ``CameraFinding`` has it.
  public func noteLoss() {
    guard let identity = traits?.identity else { return }
    traits = identity.distinguishing(among: VideoNode.all())
  }

  /// The camera, opened but not started; nil where it is not there.
  ///
  /// - Throws: ``CaptureError`` where it is there and cannot be opened.
  public func find() throws -> V4L2Camera? {
    switch selection {
    case .path(let path) where traits == nil || followsLink: return try openIfThere(path)
    case .path(let path):
      if let camera = try findAgain() { return camera }
      // What is there now is no device: a person wants to know.
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

  /// As ``CameraFinding`` has it.
  public func warnings(of camera: V4L2Camera) -> [String] { camera.warnings.map(\.description) }

  private func findAgain() throws -> V4L2Camera? {
    var refusal: CaptureError?
    for node in traits?.matches(in: VideoNode.all()) ?? [] {
      do {
        if let camera = try openIfThere(node.path) { return camera }
      } catch let error as CaptureError {
        // Another node of the same device, such as that of its metadata.
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

  /// Opens the camera at `path` as it was opened first, or as near to that as it can.
  ///
  /// - Throws: ``CaptureError``, `FramePoolError` or `ConversionError`.
  public func open(_ path: String) throws -> V4L2Camera {
    let camera: V4L2Camera
    do {
      camera = try V4L2Camera(path: path, request: agreed ?? request, fixedOrientation: fixedOrientation)
    } catch let error as CaptureError {
      guard let agreed, error.isDisagreement else { throw error }
      var relaxed = agreed
      relaxed.isSizeExplicit = false
      relaxed.isRateExplicit = false
      relaxed.format = request.format
      camera = try V4L2Camera(path: path, request: relaxed, fixedOrientation: fixedOrientation)
    }
    if agreed == nil {
      agreed = camera.agreement
    } else if let error = camera.missingSignal {
      throw error
    }
    // One that went away meanwhile tells nothing any more: what is known of it stays, or another would pass for it.
    if let identity = camera.systemDirectory.flatMap(CameraIdentity.init(directory:)) {
      traits = identity.distinguishing(among: VideoNode.all())
    }
    controls?.attach(camera.device)
    return camera
  }

  /// Whether `path` is another name of a device than the kernel's own.
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
  /// Whether the camera is there, but does not offer what is asked for.
  var isDisagreement: Bool {
    switch self {
    case .formatNotOffered, .sizeNotOffered, .rateNotOffered, .implausible: true
    default: false
    }
  }

  /// What of it may be shown to everybody who watches: neither paths nor programs.
  var remark: String {
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
