package import Media
package import Platform

/// The due times of pictures: ticks of a frame rate from a starting time.
///
/// The times equal those of ``FrameRate/time(ofFrame:)``, but the arithmetic has full width: a file may name any rate,
/// and none may overflow.
package struct FrameSchedule {
  /// The time of tick 0.
  let start: Instant
  /// The number of ticks per second.
  let rate: FrameRate

  /// Creates a schedule whose tick 0 is at `start`.
  package init(start: Instant, rate: FrameRate) {
    (self.start, self.rate) = (start, rate)
  }

  /// Returns the due time of tick `index`; ticks beyond 146 years from the start all have the same time.
  package func time(ofTick index: Int64) -> Instant {
    start + Duration(nanoseconds: Self.limit(UInt64(max(0, index)), times: cycle, by: UInt64(rate.numerator)))
  }

  /// Returns the last tick that is due at `time`; -1 before the start.
  package func lastTick(at time: Instant) -> Int64 {
    guard time >= start else { return -1 }
    let elapsed = UInt64((time - start).nanoseconds)
    var index = Self.limit(elapsed, times: UInt64(rate.numerator), by: cycle)
    // Times are rounded down to the nanosecond, so the next tick may be due already.
    while index < Int64.max / 4, self.time(ofTick: index + 1) <= time { index += 1 }
    return index
  }

  /// The number of nanoseconds in `rate.numerator` ticks.
  private var cycle: UInt64 { UInt64(rate.denominator) * 1_000_000_000 }

  /// Returns `value * factor / divisor`, rounded down, at most half of what an `Int64` holds.
  private static func limit(_ value: UInt64, times factor: UInt64, by divisor: UInt64) -> Int64 {
    let product = value.multipliedFullWidth(by: factor)
    guard product.high < divisor else { return Int64.max / 2 }
    return Int64(min(divisor.dividingFullWidth(product).quotient, UInt64(Int64.max / 2)))
  }
}
