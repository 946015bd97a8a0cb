import Platform

/// The program clock of 27 MHz and the 90 kHz timestamps on it: ISO/IEC 13818-1 section 2.4.2.2.
enum ProgramClock {
  /// The clock rate in ticks per second.
  static let rate: Int64 = 27_000_000
  /// The reading at which the clock wraps to zero: a base of 33 bits, 300 ticks each; about 26.5 hours.
  static let period: Int64 = (1 << 33) * 300

  /// Returns the clock's reading at `time`, from 0 to below ``period``.
  static func reading(at time: Instant) -> Int64 {
    let reading = time.ticks(rate: rate) % period
    return reading < 0 ? reading + period : reading
  }

  /// Returns `time` in ticks of 90 kHz, modulo 2^33.
  static func timestamp(of time: Instant) -> UInt64 {
    UInt64(reading(at: time) / 300)
  }
}
