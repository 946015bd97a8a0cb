import Glibc

/// The distance from `CLOCK_MONOTONIC` to `CLOCK_REALTIME`, for what begins with a second of the wall clock.
package struct WallClockOffset: Sendable {
  private let nanoseconds: Int64

  /// Compares both clocks. The result holds until somebody sets the wall clock.
  ///
  /// A thread that is interrupted between the two readings would see an offset that is wrong by milliseconds, so the
  /// readings that lie closest together count.
  package init() {
    var (closest, offset) = (Int64.max, Int64(0))
    for _ in 0..<Self.attempts where closest > Self.closeEnough {
      let before = Instant.now().nanoseconds
      var wall = timespec()
      clock_gettime(CLOCK_REALTIME, &wall)
      let distance = Instant.now().nanoseconds - before
      guard distance < closest else { continue }
      (closest, offset) = (
        distance, Int64(wall.tv_sec) * 1_000_000_000 + Int64(wall.tv_nsec) - before - distance / 2
      )
    }
    nanoseconds = offset
  }

  /// The most readings, and the nanoseconds within which one of them is good enough.
  private static let (attempts, closeEnough) = (5, Int64(5_000))

  /// Returns the time from the beginning of the wall clock's second to `time`.
  package func phase(at time: Instant) -> Duration {
    let rest = (time.nanoseconds + nanoseconds) % 1_000_000_000
    return Duration(nanoseconds: rest < 0 ? rest + 1_000_000_000 : rest)
  }
}
