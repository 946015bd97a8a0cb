/// A length of time in nanoseconds, such as the one between two ``Instant``s; it may be negative.
///
/// In a file that imports `Platform`, `Duration` is this type; the standard library's is `Swift.Duration`.
public struct Duration: Hashable, Comparable, Sendable {
  /// The length in nanoseconds.
  public var nanoseconds: Int64

  /// Creates a length of `nanoseconds`.
  @inlinable
  public init(nanoseconds: Int64) {
    self.nanoseconds = nanoseconds
  }

  /// Creates a length of `seconds`, rounded to the nanosecond; lengths beyond ±292 years are clamped.
  public init(seconds: Double) {
    let limit = 9.2e18
    self.nanoseconds = Int64(max(-limit, min(limit, seconds * 1e9)).rounded())
  }

  /// Creates a length of `count` milliseconds.
  @inlinable
  public static func milliseconds(_ count: Int64) -> Duration { Duration(nanoseconds: count * 1_000_000) }
  /// Creates a length of `count` seconds.
  @inlinable
  public static func seconds(_ count: Int64) -> Duration { Duration(nanoseconds: count * 1_000_000_000) }

  /// No time at all.
  public static let zero = Duration(nanoseconds: 0)

  /// The length in seconds.
  public var seconds: Double { Double(nanoseconds) / 1e9 }

  /// The length in milliseconds.
  public var milliseconds: Double { Double(nanoseconds) / 1e6 }

  /// Returns the length in ticks of a clock of `rate` Hz, rounded to the nearest tick.
  ///
  /// The whole seconds and the rest are converted separately, so that nothing overflows however long the machine has
  /// been up.
  public func ticks(rate: Int64) -> Int64 {
    let (whole, rest) = nanoseconds.quotientAndRemainder(dividingBy: 1_000_000_000)
    return whole * rate + (rest * rate + 500_000_000) / 1_000_000_000
  }

  /// Returns `true` if `left` is shorter than `right`.
  @inlinable
  public static func < (left: Duration, right: Duration) -> Bool { left.nanoseconds < right.nanoseconds }
  /// Returns the sum of two lengths.
  @inlinable
  public static func + (left: Duration, right: Duration) -> Duration {
    Duration(nanoseconds: left.nanoseconds + right.nanoseconds)
  }
  /// Returns the difference of two lengths.
  @inlinable
  public static func - (left: Duration, right: Duration) -> Duration {
    Duration(nanoseconds: left.nanoseconds - right.nanoseconds)
  }
  /// Returns a multiple of a length.
  @inlinable
  public static func * (left: Duration, right: Int64) -> Duration {
    Duration(nanoseconds: left.nanoseconds * right)
  }
}
