import Media

/// The rate at which frames really come, told only when it has changed enough to matter.
struct MeasuredFrameRate {
  private let nominal: Double
  private var average: Double
  private var assumed: Double
  private var last: MediaTime?

  /// How much one frame counts: the average is over some twenty.
  private static let weight = 0.05
  /// Jitter and a lost frame now and then are no change.
  private static let tolerance = 0.15
  /// A gap longer than this is an interruption and says nothing about the rate.
  private static let longestInterval = 5.0

  init(nominal: FrameRate) {
    self.nominal = nominal.interval.seconds
    average = self.nominal
    assumed = self.nominal
  }

  /// Takes a frame's timestamp; the new rate where it has changed.
  mutating func change(at timestamp: MediaTime) -> FrameRate? {
    defer { last = timestamp }
    guard let last else { return nil }
    let interval = (timestamp - last).seconds
    guard interval > 0, interval < max(Self.longestInterval, nominal * 4) else { return nil }
    average += (interval - average) * Self.weight
    guard abs(average / assumed - 1) > Self.tolerance else { return nil }
    assumed = average
    let limits = EncoderConfiguration.frameRateLimits
    let rate = min(limits.upperBound, max(limits.lowerBound, 1 / average))
    return FrameRate(UInt32((rate * 1000).rounded()), 1000)
  }
}
