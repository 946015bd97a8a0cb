import Media

/// Turns a driver's timestamps into ones that can be relied on: they rise, and they are of now.
struct CaptureClock {
  /// One tick of the 90 kHz clock of RTP video, rounded up: no two frames share a timestamp on the wire.
  static let leastStep = MediaTime(nanoseconds: 11_112)
  /// How far ahead of the clock a driver's timestamp may be.
  static let futureLimit = MediaTime(nanoseconds: 1_000_000_000)
  /// How far behind the clock: more than a queue of frames at the slowest rates is old.
  static let pastLimit = MediaTime(nanoseconds: 10_000_000_000)

  private var previous: MediaTime?

  /// The timestamp of a frame.
  ///
  /// - Parameters:
  ///   - driver: the driver's monotonic timestamp, nil where it gave none.
  ///   - now: when the frame was dequeued, on `CLOCK_MONOTONIC`.
  mutating func stamp(driver: MediaTime?, now: MediaTime) -> MediaTime {
    var time = now
    if let driver, driver.nanoseconds > now.nanoseconds &- Self.pastLimit.nanoseconds,
      driver.nanoseconds < now.nanoseconds &+ Self.futureLimit.nanoseconds
    {
      time = driver
    }
    if let previous, time < previous + Self.leastStep { time = previous + Self.leastStep }
    previous = time
    return time
  }
}
