public import Platform

/// A clock that decides which frames become key frames: at least one in every interval, and at once on request.
public struct KeyFrameClock: Sendable {
  /// The maximum time from one key frame to the next.
  public let interval: Duration
  private var last: Instant?
  private var isRequested = false

  /// Creates a clock whose first frame is a key frame.
  public init(interval: Duration) {
    self.interval = interval
  }

  /// Makes the next frame a key frame.
  public mutating func request() {
    isRequested = true
  }

  /// Returns `true` if the frame of `timestamp` must be a key frame.
  ///
  /// The tolerance is half a frame either way, because camera clocks jitter: 60 frames at 30 fps must be one interval
  /// of 2 s, neither 59 nor 61.
  public func isDue(at timestamp: Instant, frameInterval: Duration) -> Bool {
    guard !isRequested, let last else { return true }
    let slack = Duration(nanoseconds: frameInterval.nanoseconds / 2)
    return timestamp - last + slack >= interval
  }

  /// Records that the frame of `timestamp` became a key frame.
  public mutating func keyFrameDelivered(at timestamp: Instant) {
    last = timestamp
    isRequested = false
  }
}
