public import Media

/// Decides by time which frames become key frames: at least one in every interval, and at once when asked.
public struct KeyFrameClock: Sendable {
  /// The longest time from one key frame to the next.
  public let interval: MediaTime
  private var last: MediaTime?
  private var isRequested = false

  /// A clock whose first frame is a key frame.
  public init(interval: MediaTime) {
    self.interval = interval
  }

  /// Makes the next frame a key frame.
  public mutating func request() {
    isRequested = true
  }

  /// Whether the frame of `timestamp` is to be a key frame.
  ///
  /// Half a frame of tolerance either way: camera clocks jitter, and 60 frames at 30 fps are to be one interval
  /// of 2 s, neither 59 nor 61.
  public func isDue(at timestamp: MediaTime, frameInterval: MediaTime) -> Bool {
    guard !isRequested, let last else { return true }
    let slack = MediaTime(nanoseconds: frameInterval.nanoseconds / 2)
    return timestamp - last + slack >= interval
  }

  /// Notes that the frame of `timestamp` became a key frame.
  public mutating func keyFrameDelivered(at timestamp: MediaTime) {
    last = timestamp
    isRequested = false
  }
}
