package import Platform

/// Converts a driver's timestamps into reliable ones: they rise, and they are near the present.
package struct CaptureClock {
  /// One tick of the 90 kHz clock of RTP video, rounded up: no two frames share a timestamp on the wire.
  static let leastStep = Duration(nanoseconds: 11_112)
  /// The largest lead of a driver's timestamp over the clock.
  static let futureLimit = Duration.seconds(1)
  /// The largest lag of a driver's timestamp: longer than a queue of frames takes at the slowest rates.
  static let pastLimit = Duration.seconds(10)

  private var previous: Instant?

  /// Creates a clock that has stamped nothing.
  package init() {}

  /// Returns the timestamp of a frame.
  ///
  /// - Parameters:
  ///   - driver: the driver's monotonic timestamp; nil if there is none.
  ///   - now: the time of the dequeuing, on `CLOCK_MONOTONIC`.
  package mutating func stamp(driver: Instant?, now: Instant) -> Instant {
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
