public import Platform

/// The state of a camera that can be connected and disconnected.
public enum CameraState: String, CaseIterable, Hashable, Sendable {
  /// The camera delivers pictures.
  case live
  /// The camera has not been connected yet.
  case waiting
  /// The camera was unplugged.
  case disconnected
  /// The camera is connected but has stopped delivering.
  case stalled
  /// The camera's driver fails, or the signal at its input has changed.
  case failed
  /// The camera delivers the same picture again and again, bit for bit.
  case frozen

  /// `true` if the camera's own pictures are streamed.
  public var delivers: Bool { self == .live || self == .frozen }
}

/// A camera's state and the history of its losses.
public struct CameraCondition: Hashable, Sendable {
  /// The camera's state.
  public var state: CameraState
  /// The start of the state, on `CLOCK_MONOTONIC`. For a lost camera: the time of its last picture.
  public var since: Instant
  /// The path that the connected camera's device was opened by; nil where none is connected.
  public var devicePath: String?
  /// The number of times that the camera was lost.
  public var losses = 0
  /// The number of times that the camera was opened again.
  public var reopenings = 0
  /// The colour description of the last connected camera's samples; nil before the first camera.
  public var color: ColorDescription?
  /// The number of pictures that were streamed in place of the camera's own.
  public var placeholderFrames = 0
  /// The reason why a connected camera cannot be opened; nil where the camera is absent or nothing is wrong.
  public var obstacle: String?

  /// Creates the condition of a camera that has been in `state` since then and was never lost.
  public init(_ state: CameraState, since: Instant) {
    self.state = state
    self.since = since
  }
}

/// An event of a running stream's camera, with a one-line message for the terminal.
public enum CameraEvent: Hashable, Sendable, CustomStringConvertible {
  /// The camera no longer delivers.
  case lost(reason: String)
  /// The camera delivers again, or for the first time.
  case found(name: String, isFirst: Bool, after: Duration)
  /// The camera is connected but cannot be opened.
  case refused(reason: String)
  /// The camera delivers pictures of another size than the stream's.
  case scaled(from: PictureSize, to: PictureSize)
  /// No bit of the camera's picture has changed for this time.
  case frozen(since: String, for: Duration)
  /// The camera's picture changes again.
  case thawed(after: Duration)
  /// The camera was set up again: for its own H.264, which is passed on, or for pictures that are encoded here.
  case coded(isPassedOn: Bool, reason: String, after: Duration)
  /// The camera's controls were set without a request.
  case controls(String)
  /// A warning about something that ends nothing.
  case warning(String)

  /// A one-line message for the terminal.
  public var description: String {
    switch self {
    case .lost(let reason): "camera lost: \(reason); nightjar streams a placeholder"
    case .found(let name, let isFirst, let time):
      "camera is \(isFirst ? "there" : "back") after \(time.tenths) s: \(name)"
    case .refused(let reason): "camera not opened: \(reason); nightjar tries again"
    case .scaled(let size, let target): "the camera delivers \(size) now, scaled to the stream's \(target)"
    case .frozen(let since, let time):
      "picture frozen since \(since): no bit of it has changed for \(time.tenths) s; check the camera"
    case .thawed(let time): "picture moves again after \(time.tenths) s"
    case .coded(true, _, let time): "the camera's own H.264 is passed on again, after \(time.tenths) s"
    case .coded(false, let reason, let time):
      "the camera's pictures are encoded here: \(reason); the change took \(time.tenths) s"
    case .controls(let text): text
    case .warning(let text): "warning: \(text)"
    }
  }

  /// `true` if a person should look into the event.
  public var isWarning: Bool {
    switch self {
    case .found, .thawed, .coded, .controls: false
    case .lost, .refused, .scaled, .frozen, .warning: true
    }
  }
}

extension Duration {
  /// Seconds to the tenth, such as `3.2`.
  fileprivate var tenths: String {
    let tenths = (max(0, nanoseconds) + 50_000_000) / 100_000_000
    return "\(tenths / 10).\(tenths % 10)"
  }
}
