import Media

/// The rate at which frames really come, told only when it has changed enough to matter.
struct MeasuredFrameRate {
  private let nominal: FrameRate
  /// The interval between frames, in seconds: an average, and what was told last.
  private var average: Double
  private var assumed: Double
  private var last: MediaTime?
  /// Frames since the average last agreed with what was told.
  private var framesApart = 0

  /// How much one frame counts: the average is over some twenty.
  private static let weight = 0.05
  /// An interval counts as no more than so many average ones, and as no less than their inverse: one that is long is a
  /// stall of the source, and no rate.
  private static let span = 2.0
  /// Jitter and a lost frame now and then are no change.
  private static let tolerance = 0.15
  /// What the average may be off for long: what was told on the way from one rate to another is not where it ends.
  private static let settledTolerance = 0.03
  /// How many frames are long.
  private static let settlingFrames = 60

  init(nominal: FrameRate) {
    self.nominal = nominal
    average = nominal.interval.seconds
    assumed = average
  }

  /// No frame is encoded: the time up to the next one says nothing about the rate.
  mutating func rest() {
    last = nil
  }

  /// Takes a frame's timestamp; the new rate where it has changed.
  mutating func change(at timestamp: MediaTime) -> FrameRate? {
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
    // The one that was asked for, where it is that.
    if abs(average / nominal.interval.seconds - 1) < Self.settledTolerance { return nominal }
    return FrameRate(UInt32((rate * 1000).rounded()), 1000)
  }
}
