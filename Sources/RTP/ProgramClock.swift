import Media

/// The clock of a program, 27 MHz, and the 90 kHz marks that are read against it: ISO/IEC 13818-1 section 2.4.2.2.
enum ProgramClock {
  /// Ticks a second.
  static let rate: Int64 = 27_000_000
  /// Where the clock returns to zero: a base of 33 bits, 300 ticks each; some 26.5 hours.
  static let period: Int64 = (1 << 33) * 300

  /// The clock's reading at `time`, from 0 to below ``period``.
  static func reading(at time: MediaTime) -> Int64 {
    let reading = time.ticks(rate: rate) % period
    return reading < 0 ? reading + period : reading
  }

  /// `time` in ticks of 90 kHz, modulo 2^33.
  static func timestamp(of time: MediaTime) -> UInt64 {
    UInt64(reading(at: time) / 300)
  }
}
