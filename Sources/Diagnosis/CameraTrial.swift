public import Capture
import Credentials
public import Media
import Threading

/// What a camera delivered when it was tried.
public struct CameraTrial: Sendable {
  /// What was agreed on with it.
  public let format: SourceFormat
  /// What it is: `HD Pro Webcam C920 (/dev/video0)`.
  public let name: String
  /// Pictures that came.
  private(set) var pictures = PictureCount()
  /// Pictures that were lost or broken, by cause.
  public private(set) var losses: [DropCause: Int] = [:]
  /// How often they came; nil where fewer than two did.
  private(set) var rate: PictureCount.Rate?
  /// What is odd about it.
  public private(set) var remarks: [String] = []
  /// Whether its driver may have slowed it down because it is dark.
  public private(set) var slowsInTheDark = false
  /// What it broke with, once it was open.
  public private(set) var failure: CaptureError?

  /// How long pictures are counted.
  public static let length = MediaTime(seconds: 2)
  /// How long the first one is waited for.
  public static let patience = MediaTime(seconds: 5)
  /// How long all of it may take where a driver does not come back.
  public static let limit = MediaTime(seconds: 9)

  /// Opens the camera at `path` as a stream would, counts its pictures, and closes it.
  ///
  /// - Throws: ``CaptureError``, `FramePoolError` or `ConversionError` where it cannot be opened.
  public init(path: String, request: FormatRequest) throws {
    let camera = try V4L2Camera(path: path, request: request)
    format = camera.format
    name = camera.name
    let interrupt = try Interrupt()
    defer { camera.stop() }
    // Some drivers make up a picture then.
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
    let deadline = MediaTime.now() + Self.patience
    var begin = MediaTime.zero
    while true {
      let now = MediaTime.now()
      guard pictures.count > 0 ? now - begin < Self.length : now < deadline else { break }
      switch try camera.next(interrupt: interrupt) {
      case .frame(let frame):
        if pictures.count == 0 { begin = now }
        pictures.add(frame.timestamp, at: .now())
      // What is lost before the first picture is a camera that wakes up.
      case .dropped(let cause, let count): if pictures.count > 0 { losses[cause, default: 0] += count }
      case .idle: continue
      case .ended: return
      }
    }
    rate = pictures.rate(until: .now(), interval: format.frameRate.interval)
  }

  /// A trial that goes on, on a thread of its own.
  public struct Running: Sendable {
    private let call: BlockingCall<CameraTrial, any Error>
    private let deadline = MediaTime.now() + CameraTrial.limit

    /// Begins one.
    ///
    /// - Throws: ``SystemFailure`` where the system has no thread left.
    public init(path: String, request: FormatRequest) throws(SystemFailure) {
      call = try BlockingCall("nj-trial") { try CameraTrial(path: path, request: request) }
    }

    /// Waits for its end; nil where the driver does not come back.
    ///
    /// - Throws: as ``CameraTrial/init(path:request:)``.
    public func result() throws -> CameraTrial? { try call.result(by: deadline)?.get() }
  }
}

extension CameraTrial {
  /// What is to be said of the rate.
  ///
  /// - Parameters:
  ///   - path: the node, for commands.
  ///   - usb: how it hangs on its bus, where it is a USB camera.
  public func findings(path: String, usb: USBLink?) -> [Finding] {
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

  /// What is to be said of pictures that did not come, or not whole; nil where they are few.
  static func finding(
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
  /// What is to be said where the camera at `path` cannot be opened.
  ///
  /// - Parameter isWaitedFor: whether the stream begins without it.
  public func finding(path: String, isWaitedFor: Bool) -> Finding {
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

  /// The option that asks for what there is.
  private var nearest: Mend? {
    switch self {
    case .sizeNotOffered(_, let nearest, _): .advice("size = \"\(nearest)\"")
    case .rateNotOffered(_, let nearest, _, _): .advice("fps = \"\(nearest)\"")
    case .formatNotOffered: .advice("format = \"auto\"")
    default: nil
    }
  }
}
