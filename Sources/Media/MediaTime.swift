import Glibc

/// A point in time, or a span of it, in nanoseconds.
///
/// Points are on `CLOCK_MONOTONIC`, the clock of V4L2 buffer timestamps
/// (`V4L2_BUF_FLAG_TIMESTAMP_MONOTONIC`): setting the wall clock moves nothing.
public struct MediaTime: Hashable, Comparable, Sendable {
  /// Nanoseconds since the clock's start, or the length of the span.
  public var nanoseconds: Int64

  /// A time of `nanoseconds`.
  @inlinable
  public init(nanoseconds: Int64) {
    self.nanoseconds = nanoseconds
  }

  /// A span of `seconds`, rounded to the nanosecond; spans beyond ±292 years are clamped.
  public init(seconds: Double) {
    let limit = 9.2e18
    self.nanoseconds = Int64(max(-limit, min(limit, seconds * 1e9)).rounded())
  }

  /// The clock's start, or an empty span.
  public static let zero = MediaTime(nanoseconds: 0)

  /// `CLOCK_MONOTONIC` now.
  public static func now() -> MediaTime {
    var time = timespec()
    clock_gettime(CLOCK_MONOTONIC, &time)
    return MediaTime(nanoseconds: Int64(time.tv_sec) * 1_000_000_000 + Int64(time.tv_nsec))
  }

  /// The same in seconds.
  public var seconds: Double { Double(nanoseconds) / 1e9 }

  /// The same in milliseconds.
  public var milliseconds: Double { Double(nanoseconds) / 1e6 }

  /// The same in ticks of a clock of `rate` Hz, rounded to the nearest tick.
  ///
  /// The whole seconds and the rest are converted apart, so that nothing
  /// overflows however long the machine has been up.
  public func ticks(rate: Int64) -> Int64 {
    let (whole, rest) = nanoseconds.quotientAndRemainder(dividingBy: 1_000_000_000)
    return whole * rate + (rest * rate + 500_000_000) / 1_000_000_000
  }

  /// The earlier one is smaller.
  @inlinable
  public static func < (left: MediaTime, right: MediaTime) -> Bool { left.nanoseconds < right.nanoseconds }
  /// A point moved, or two spans added.
  @inlinable
  public static func + (left: MediaTime, right: MediaTime) -> MediaTime {
    MediaTime(nanoseconds: left.nanoseconds + right.nanoseconds)
  }
  /// The span between two points.
  @inlinable
  public static func - (left: MediaTime, right: MediaTime) -> MediaTime {
    MediaTime(nanoseconds: left.nanoseconds - right.nanoseconds)
  }
  /// A span repeated.
  @inlinable
  public static func * (left: MediaTime, right: Int64) -> MediaTime {
    MediaTime(nanoseconds: left.nanoseconds * right)
  }
}
