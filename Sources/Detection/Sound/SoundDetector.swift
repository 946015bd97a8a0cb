/// The findings of the sound's detectors at one time.
package struct SoundFinding: Hashable, Sendable {
  /// The level of the band 300–3000 Hz, in dBFS, and the background.
  package var (level, background) = (-100.0, -100.0)
  /// The seconds for which there has been noise; nil without noise.
  package var noise: Double?
  /// The seconds for which somebody has probably cried; nil for nobody.
  package var crying: Double?
  /// The confidence of the crying, 0…1.
  package var confidence = 0.0

  /// Creates a finding of silence.
  package init() {}
}

/// A detector of noise and crying in sound of 48,000 samples a second. Allocates at its creation only.
package struct SoundDetector: ~Copyable {
  /// The settings of the detectors.
  package struct Settings: Hashable, Sendable {
    /// The sensitivity for noise.
    package var sensitivity: NoiseSensitivity
    /// `true` looks for crying too.
    package var detectsCrying: Bool

    /// Creates settings.
    package init(sensitivity: NoiseSensitivity = .medium, detectsCrying: Bool = true) {
      (self.sensitivity, self.detectsCrying) = (sensitivity, detectsCrying)
    }
  }

  private let channels: Int
  private var noise: NoiseDetector
  private var band = BandFilter(rate: 48_000)
  private var (edge1, edge2): (Biquad, Biquad)
  private var cry: CryDetector
  private let detectsCrying: Bool
  private var phase = 0

  /// Creates a detector for samples of `channels`.
  package init(channels: Int, _ settings: Settings) {
    (self.channels, detectsCrying) = (channels, settings.detectsCrying)
    noise = NoiseDetector(settings.sensitivity)
    cry = CryDetector()
    // One sample in four is kept for crying.
    edge1 = .lowPass(4800, rate: 48_000, quality: 0.5412)
    edge2 = .lowPass(4800, rate: 48_000, quality: 1.3066)
  }

  /// Notes 20 ms of sound, all channels interleaved.
  package mutating func note(_ frame: UnsafeBufferPointer<Int16>) -> SoundFinding {
    let count = frame.count / channels
    var sum: Float = 0
    let excess = noise.excess
    var index = 0
    for _ in 0..<count {
      var sample = Float(frame[index])
      if channels == 2 { sample = (sample + Float(frame[index + 1])) / 2 }
      index += channels
      sample /= 32_768
      let filtered = band.apply(sample)
      sum += filtered * filtered
      guard detectsCrying else { continue }
      let narrow = edge2.apply(edge1.apply(sample))
      phase += 1
      if phase == 4 {
        phase = 0
        cry.note(narrow, excess: excess)
      }
    }
    noise.note(Double(sum) / Double(max(1, count)))
    var finding = SoundFinding()
    (finding.level, finding.background, finding.noise) = (noise.level, noise.floor, noise.age)
    (finding.crying, finding.confidence) = (cry.age, cry.confidence)
    return finding
  }
}
