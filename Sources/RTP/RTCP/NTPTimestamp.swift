public import Platform

/// A wall-clock time in RTCP's format: seconds since 1900 and fractions of 2^-32 s, RFC 3550 section 4.
///
/// The timestamp does not tell eras apart. The arithmetic is modulo 2^64, and differences are correct across the wrap
/// of 2036.
public struct NTPTimestamp: RawRepresentable, Hashable, Sendable {
  /// The seconds in the upper 32 bits, the fraction in the lower 32 bits.
  public var rawValue: UInt64

  /// The seconds from 1900 to 1970.
  static let unixEpoch: Int64 = 2_208_988_800

  /// Creates a timestamp of these bits.
  public init(rawValue: UInt64) {
    self.rawValue = rawValue
  }

  /// Creates the timestamp of a `CLOCK_REALTIME` value, whose `nanoseconds` are 0…999,999,999.
  public init(unixSeconds seconds: Int64, nanoseconds: Int64) {
    let fraction = UInt64(clamping: nanoseconds) << 32 / 1_000_000_000
    rawValue = UInt64(truncatingIfNeeded: seconds &+ Self.unixEpoch) << 32 &+ fraction
  }

  /// The middle 32 bits, in units of 1/65536 s. LSR, DLSR and round trips use this form (RFC 3550 section 6.4.1).
  public var compact: UInt32 { UInt32(truncatingIfNeeded: rawValue >> 16) }

  /// Returns the time `span` later.
  public static func + (time: NTPTimestamp, span: Duration) -> NTPTimestamp {
    let (seconds, rest) = span.nanoseconds.quotientAndRemainder(dividingBy: 1_000_000_000)
    // A negative rest shifts to a negative fraction, which the wrapping addition borrows from the seconds.
    let fraction = (rest << 32) / 1_000_000_000
    let moved = seconds << 32 &+ fraction
    return NTPTimestamp(rawValue: time.rawValue &+ UInt64(bitPattern: moved))
  }

  /// Returns `span` in 1/65536 s, the unit of DLSR: 0 for a negative one, and clamped at 18 hours.
  static func compactSpan(_ span: Duration) -> UInt32 {
    let limit: Int64 = 65_535 * 1_000_000_000
    let nanoseconds = max(0, min(span.nanoseconds, limit))
    return UInt32(clamping: nanoseconds * 65_536 / 1_000_000_000)
  }

  /// Returns the span of `compact` units of 1/65536 s.
  static func span(compact: UInt32) -> Duration {
    Duration(nanoseconds: Int64(compact) * 1_000_000_000 / 65_536)
  }
}
