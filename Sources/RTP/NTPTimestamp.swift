public import Media

/// A wall-clock time as RTCP carries it: seconds since 1900 and 2^32 fractions of one, RFC 3550 section 4.
///
/// Eras are not told apart: the arithmetic is modulo 2^64, and differences are right across the wrap of 2036.
public struct NTPTimestamp: RawRepresentable, Hashable, Sendable {
  /// Seconds in the upper 32 bits, fractions in the lower.
  public var rawValue: UInt64

  /// Seconds from 1900 to 1970.
  private static let unixEpoch: Int64 = 2_208_988_800

  /// A timestamp of these bits.
  public init(rawValue: UInt64) {
    self.rawValue = rawValue
  }

  /// The timestamp of a `CLOCK_REALTIME` value, whose `nanoseconds` are 0…999,999,999.
  public init(unixSeconds seconds: Int64, nanoseconds: Int64) {
    let fraction = UInt64(clamping: nanoseconds) << 32 / 1_000_000_000
    rawValue = UInt64(truncatingIfNeeded: seconds &+ Self.unixEpoch) << 32 &+ fraction
  }

  /// The middle 32 bits, 1/65536 s each: what LSR, DLSR and round trips are counted in (RFC 3550 section 6.4.1).
  public var compact: UInt32 { UInt32(truncatingIfNeeded: rawValue >> 16) }

  /// The time `span` later.
  public static func + (time: NTPTimestamp, span: MediaTime) -> NTPTimestamp {
    let (seconds, rest) = span.nanoseconds.quotientAndRemainder(dividingBy: 1_000_000_000)
    // A negative rest shifts to a negative fraction, which the wrapping addition borrows from the seconds.
    let fraction = (rest << 32) / 1_000_000_000
    let moved = seconds << 32 &+ fraction
    return NTPTimestamp(rawValue: time.rawValue &+ UInt64(bitPattern: moved))
  }

  /// `span` in 1/65536 s, as DLSR has it; 0 for a negative one, and clamped at 18 hours.
  static func compactSpan(_ span: MediaTime) -> UInt32 {
    let limit: Int64 = 65_535 * 1_000_000_000
    let nanoseconds = max(0, min(span.nanoseconds, limit))
    return UInt32(clamping: nanoseconds * 65_536 / 1_000_000_000)
  }

  /// The span of `compact`, 1/65536 s each.
  static func span(compact: UInt32) -> MediaTime {
    MediaTime(nanoseconds: Int64(compact) * 1_000_000_000 / 65_536)
  }
}
