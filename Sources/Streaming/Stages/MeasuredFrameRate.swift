package import Media
package import Platform

/// The rate at which frames really come, reported only when it has changed enough to matter.
package struct MeasuredFrameRate {
  private let nominal: FrameRate
  /// The interval between frames in seconds: the average. `assumed` is the interval that was reported last.
  private var average: Double
  private var assumed: Double
  private var last: Instant?
  /// The number of frames since the average last agreed with the reported interval.
  private var framesApart = 0

  /// The weight of one frame: the average is over some twenty.
  private static let weight = 0.05
  /// The most average intervals that one interval counts as; its inverse is the least. A long interval is a stall of
  /// the source, and no rate.
  private static let span = 2.0
  /// The tolerance for jitter and for a lost frame now and then, which are no change of rate.
  private static let tolerance = 0.15
  /// The lasting deviation that the average may have. A rate that was reported during a change is not the final one.
  private static let settledTolerance = 0.03
  /// The number of frames after which a deviation is lasting.
  private static let settlingFrames = 60

  package init(nominal: FrameRate) {
    self.nominal = nominal
    average = nominal.interval.seconds
    assumed = average
  }

  /// Notes that no frame is encoded: the time up to the next one says nothing about the rate.
  package mutating func rest() {
    last = nil
  }

  /// Takes a frame's timestamp, and returns the new rate where it has changed.
  package mutating func change(at timestamp: Instant) -> FrameRate? {
    defer { last = timestamp }
    guard let last else { return nil }
    let interval = (timestamp - last).seconds
    guard interval > 0 else { return nil }
    average += (min(max(interval, average / Self.span), average * Self.span) - average) * Self.weight
    let difference = abs(average / assumed - 1)
    framesApart = difference > Self.settledTolerance ? framesApart + 1 : 0
    guard difference > Self.tolerance || framesApart >= Self.settlingFrames else { return nil }
    framesApart = 0
    assumed = average
    let limits = EncoderConfiguration.frameRateLimits
    let rate = min(limits.upperBound, max(limits.lowerBound, 1 / average))
    // The requested rate, where the measured one is close to it.
    if abs(average / nominal.interval.seconds - 1) < Self.settledTolerance { return nominal }
    return FrameRate(UInt32((rate * 1000).rounded()), 1000)
  }
}
