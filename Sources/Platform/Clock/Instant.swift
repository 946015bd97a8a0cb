import Glibc

/// A point in time, in nanoseconds of `CLOCK_MONOTONIC`.
///
/// That is the clock of V4L2 buffer timestamps (`V4L2_BUF_FLAG_TIMESTAMP_MONOTONIC`): setting the wall clock does not
/// affect it. The time between two points is a ``Duration``; two points have no sum.
public struct Instant: Hashable, Comparable, Sendable {
  /// Nanoseconds since the clock's start.
  public var nanoseconds: Int64

  /// Creates the point `nanoseconds` after the clock's start.
  @inlinable
  public init(nanoseconds: Int64) {
    self.nanoseconds = nanoseconds
  }

  /// The clock's start, before every picture.
  public static let zero = Instant(nanoseconds: 0)

  /// Returns the current time of `CLOCK_MONOTONIC`.
  public static func now() -> Instant {
    var time = timespec()
    clock_gettime(CLOCK_MONOTONIC, &time)
    return Instant(nanoseconds: Int64(time.tv_sec) * 1_000_000_000 + Int64(time.tv_nsec))
  }

  /// Returns the ticks of a clock of `rate` Hz since the start of `CLOCK_MONOTONIC`, rounded to the nearest tick.
  public func ticks(rate: Int64) -> Int64 { Duration(nanoseconds: nanoseconds).ticks(rate: rate) }

  /// Returns `true` if `left` is earlier than `right`.
  @inlinable
  public static func < (left: Instant, right: Instant) -> Bool { left.nanoseconds < right.nanoseconds }
  /// Returns the time from `right` to `left`; negative if `left` is the earlier one.
  @inlinable
  public static func - (left: Instant, right: Instant) -> Duration {
    Duration(nanoseconds: left.nanoseconds - right.nanoseconds)
  }
  /// Returns the point that is `duration` after `instant`.
  @inlinable
  public static func + (instant: Instant, duration: Duration) -> Instant {
    Instant(nanoseconds: instant.nanoseconds + duration.nanoseconds)
  }
  /// Returns the point that is `duration` before `instant`.
  @inlinable
  public static func - (instant: Instant, duration: Duration) -> Instant {
    Instant(nanoseconds: instant.nanoseconds - duration.nanoseconds)
  }
}
