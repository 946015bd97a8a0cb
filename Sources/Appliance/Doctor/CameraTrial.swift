package import Capture
package import Media
package import Platform
import Serving

/// The result of a camera's trial.
package struct CameraTrial: Sendable {
  /// The negotiated format.
  package let format: SourceFormat
  /// The camera's name: `HD Pro Webcam C920 (/dev/video0)`.
  package let name: String
  /// The received pictures.
  private(set) var pictures = PictureCount()
  /// The number of lost or corrupt pictures, by cause.
  package private(set) var losses: [DropCause: Int] = [:]
  /// The picture rate; nil where fewer than two pictures came.
  private(set) var rate: PictureCount.Rate?
  /// Remarks on the camera's peculiarities.
  package private(set) var remarks: [String] = []
  /// `true` if the driver may have lowered the rate because it is dark.
  package private(set) var slowsInTheDark = false
  /// The error that ended the trial after the camera was open.
  package private(set) var failure: CaptureError?

  /// The time for which pictures are counted.
  package static let length = Duration(seconds: 2)
  /// The longest wait for the first picture.
  package static let patience = Duration(seconds: 5)
  /// The longest time of the whole trial, for a driver that hangs.
  package static let limit = Duration(seconds: 9)

  /// Opens the camera at `path` as a stream would, counts its pictures, and closes it.
  ///
  /// - Throws: ``CaptureError``, `FramePoolError` or `ConversionError` where it cannot be opened.
  package init(path: String, request: FormatRequest) throws {
    let camera = try V4L2Camera(path: path, request: request)
    format = camera.format
    name = camera.name
    let interrupt = try Interrupt()
    defer { camera.stop() }
    // Some drivers generate a picture then.
    failure = camera.missingSignal
    guard failure == nil else { return }
    do {
      try camera.start()
      try count(camera, interrupt)
    } catch let error as CaptureError {
      failure = error
    }
    slowsInTheDark = camera.slowsInTheDark
    remarks = camera.warnings.map(\.description)
    for case .warning(let text) in camera.takeEvents() { remarks.append(text) }
  }

  private mutating func count(_ camera: V4L2Camera, _ interrupt: borrowing Interrupt) throws {
    let deadline = Instant.now() + Self.patience
    var begin = Instant.zero
    while true {
      let now = Instant.now()
      guard pictures.count > 0 ? now - begin < Self.length : now < deadline else { break }
      switch try camera.next(interrupt: interrupt) {
      case .frame(let frame):
        if pictures.count == 0 { begin = now }
        pictures.add(frame.timestamp, at: .now())
      // Losses before the first picture do not count, because the camera is still starting.
      case .dropped(let cause, let count): if pictures.count > 0 { losses[cause, default: 0] += count }
      case .idle: continue
      case .ended: return
      }
    }
    rate = pictures.rate(until: .now(), interval: format.frameRate.interval)
  }

  /// A running trial, on a thread of its own.
  package struct Running: Sendable {
    private let call: BlockingCall<CameraTrial, any Error>
    private let deadline = Instant.now() + CameraTrial.limit

    /// Starts a trial.
    ///
    /// - Throws: ``SystemFailure`` where the system has no thread left.
    package init(path: String, request: FormatRequest) throws(SystemFailure) {
      call = try BlockingCall("nj-trial") { try CameraTrial(path: path, request: request) }
    }

    /// Waits for the trial's end; returns nil where the driver hangs.
    ///
    /// - Throws: as ``CameraTrial/init(path:request:)``.
    package func result() throws -> CameraTrial? { try call.result(by: deadline)?.get() }
  }
}

extension CameraTrial {
  /// Returns the findings on the rate.
  ///
  /// - Parameters:
  ///   - path: the node, for commands.
  ///   - usb: the link to the bus, for a USB camera.
  package func findings(path: String, usb: USBLink?) -> [Finding] {
    let agreed = format.frameRate.framesPerSecond
    let kind = "\(format.pixelFormat) \(format.size)"
    var found = remarks.map { Finding(.cameraRemark, $0) }
    guard let rate else {
      let replug = [usb?.replug].compactMap { $0 } + [Mend.advice("unplug the camera and plug it in again")]
      if case .sourceChanged = failure {
        let signal = Finding(
          .cameraSignal, failure?.description ?? "", mends: [.advice("check the cable and what it is plugged into")])
        return found + [signal]
      }
      let reason =
        failure.map { "\($0)" } ?? "\(pictures.count) pictures of \(kind) within \(Int(Self.patience.seconds)) s"
      return found + [Finding(.rateNone, reason, mends: replug, figures: ["fps": 0])]
    }
    if let finding = Self.finding(ofLosses: losses, among: pictures.count, rate, agreed) { found.append(finding) }
    let dark = Mend.command("v4l2-ctl -d \(ShellWord.quoted(path)) -c exposure_dynamic_framerate=0")
    found.append(rate.finding(agreed: agreed, of: kind, first: slowsInTheDark ? [dark] : []))
    return found
  }

  /// Returns the finding on missing or incomplete pictures; nil where they are few.
  package static func finding(
    ofLosses losses: [DropCause: Int], among frames: Int, _ rate: PictureCount.Rate, _ agreed: Double
  ) -> Finding? {
    let lost = losses.values.reduce(0, +)
    guard lost * 100 > (frames + lost) * 2 else { return nil }
    let causes = losses.sorted { $0.key.rawValue < $1.key.rawValue }.map { "\($0.key.name) \($0.value)" }
    return Finding(
      .rateLosses, "\(lost) of \(frames + lost) pictures lost: \(causes.joined(separator: ", "))",
      mends: [.advice("another USB port or cable, no hub; or a smaller size")],
      figures: ["fps": rate.framesPerSecond, "fps_agreed": agreed])
  }
}

extension CaptureError {
  /// Returns the finding where the camera at `path` cannot be opened.
  ///
  /// - Parameter isWaitedFor: `true` if the stream starts without the camera.
  package func finding(path: String, isWaitedFor: Bool) -> Finding {
    let list = Mend.command("nightjar devices")
    switch self {
    case .noDevice, .disconnected:
      return isWaitedFor
        ? Finding(
          .cameraAwaited, "there is no \(path): a placeholder is streamed", mends: [.advice("plug it in"), list])
        : Finding(.cameraMissing, "there is no \(path)", mends: [.advice("plug it in, or name another"), list])
    case .notVideo, .notCapture:
      return Finding(.cameraOther, description, mends: [list])
    case .noPermission(let path):
      return NodeAccess(path: path).finding(usual: "video")
        ?? Finding(.cameraMode, "\(path): permission denied", mends: [.command("ls -l \(ShellWord.quoted(path))")])
    case .busy(_, let holders):
      let processes = holders.map { "\($0.processID)" }.joined(separator: " ")
      return Finding(
        .cameraBusy,
        holders.isEmpty
          ? "\(path) is in use by a program of another user"
          : "\(path) is in use by \(holders.map(\.description).joined(separator: ", "))",
        mends: [.command(holders.isEmpty ? "sudo fuser -v \(ShellWord.quoted(path))" : "kill \(processes)")])
    case .formatNotOffered, .sizeNotOffered, .rateNotOffered, .sizeNotEncodable:
      return Finding(.cameraFormat, description, mends: [nearest, list].compactMap { $0 })
    case .sourceChanged:
      return Finding(.cameraSignal, description, mends: [.advice("check the cable and what it is plugged into")])
    default:
      return Finding(
        .cameraUnusable, description,
        mends: [.advice("unplug the camera and plug it in again"), .command("sudo dmesg | tail -n 20")])
    }
  }

  /// The option with the nearest available value.
  private var nearest: Mend? {
    switch self {
    case .sizeNotOffered(_, let nearest, _): .advice("size = \"\(nearest)\"")
    case .rateNotOffered(_, let nearest, _, _): .advice("fps = \"\(nearest)\"")
    case .formatNotOffered: .advice("format = \"auto\"")
    default: nil
    }
  }
}
