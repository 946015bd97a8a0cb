#if X264
  import Glibc

  /// A control of x264's rate factor that keeps the average bitrate at a target.
  ///
  /// An increase of six roughly halves the bits, so the correction is proportional to the logarithm of the error.
  /// x264's VBV limits the peak.
  struct RateFactorControl {
    /// The rate factor at the start of a stream.
    static let first = 24.0
    /// The range of rate factors. Below it, a still scene would be coded without loss and the first movement would
    /// burst; above it, nothing is recognisable.
    static let limits = 12.0...48.0
    /// The share of an error that one step corrects. With the lag of the average, the control settles in some five
    /// seconds without oscillation.
    private static let gain = 1.5
    /// The largest change of one step, because larger steps are visible.
    private static let longestStep = 2.0
    /// The time from one step to the next, in seconds.
    private static let stepSeconds = 0.5
    /// The average's time constant, in seconds, long enough to smooth out key frames.
    private static let averageSeconds = 1.5

    /// The rate factor to encode with.
    private(set) var factor = RateFactorControl.first
    /// The average number of bits in a picture.
    private var average: Double
    /// The target for ``average``.
    private var target: Double
    private var framesPerSecond: Double
    private var frames = 0

    init(bitrate: Int, framesPerSecond: Double) {
      target = Double(bitrate) / framesPerSecond
      average = target
      self.framesPerSecond = framesPerSecond
    }

    /// Changes the target.
    mutating func change(bitrate: Int, framesPerSecond: Double) {
      let previous = target
      target = Double(bitrate) / framesPerSecond
      self.framesPerSecond = framesPerSecond
      // The known error stays with the content; the error from the change is known at once.
      average *= target / previous
      move(by: 6 * log2(previous / target))
    }

    /// Counts a picture. Returns `true` if ``factor`` has changed.
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
