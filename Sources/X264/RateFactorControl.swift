#if X264
  import Glibc

  /// Steers x264's rate factor so that the pictures come to a bitrate on average.
  ///
  /// Six more of it halve the bits, roughly, so its correction is a share of the logarithm of how far they are off;
  /// the peak is x264's own affair, by its VBV.
  struct RateFactorControl {
    /// What a stream starts with.
    static let first = 24.0
    /// Below, a still scene would be coded without loss and the first movement burst; above, nothing is recognised.
    static let limits = 12.0...48.0
    /// The share of an error that is corrected at a step: with the average's lag it settles in some five seconds
    /// without swinging.
    private static let gain = 1.5
    /// The most that one step changes: more is seen.
    private static let longestStep = 2.0
    /// The time from one step to the next, seconds.
    private static let stepSeconds = 0.5
    /// The average's time constant, seconds: key frames are to vanish in it.
    private static let averageSeconds = 1.5

    /// The rate factor to encode with.
    private(set) var factor = RateFactorControl.first
    /// Bits in a picture on average.
    private var average: Double
    /// What they are to be.
    private var target: Double
    private var framesPerSecond: Double
    private var frames = 0

    init(bitrate: Int, framesPerSecond: Double) {
      target = Double(bitrate) / framesPerSecond
      average = target
      self.framesPerSecond = framesPerSecond
    }

    /// Aims at other values from now on.
    mutating func change(bitrate: Int, framesPerSecond: Double) {
      let previous = target
      target = Double(bitrate) / framesPerSecond
      self.framesPerSecond = framesPerSecond
      // The error known so far stays with the content; that of the change is known at once.
      average *= target / previous
      move(by: 6 * log2(previous / target))
    }

    /// Counts a picture; true where ``factor`` has changed.
    mutating func add(bits: Int) -> Bool {
      average += (Double(bits) - average) * min(1, 1 / (Self.averageSeconds * framesPerSecond))
      frames += 1
      guard Double(frames) >= Self.stepSeconds * framesPerSecond else { return false }
      frames = 0
      let before = factor
      let error = log2(max(average, 1) / target)
      move(by: max(-Self.longestStep, min(Self.longestStep, Self.gain * error)))
      return factor != before
    }

    private mutating func move(by difference: Double) {
      factor = max(Self.limits.lowerBound, min(Self.limits.upperBound, factor + difference))
    }
  }
#endif
