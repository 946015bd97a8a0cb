import Detection
import Foundation

/// A sound over a background, and what the detector says of it.
struct SoundScene {
  /// The level of the background within 300–3000 Hz, in dBFS.
  static let backgroundLevel: Float = -52

  var background: any SoundGenerator
  var source: (any SoundGenerator)?
  /// The decibels of the source above the background, within 300–3000 Hz.
  var decibels: Float = 0
  var detector: SoundDetector.Settings = .init()

  /// The findings over some time.
  struct Result {
    /// The seconds at which noise began, and those at which crying began.
    var (noise, crying): ([Double], [Double]) = ([], [])
    var confidence = 0.0
  }

  /// The settings of the detector.
  typealias Settings = SoundDetector.Settings

  /// Runs the scene: first the background alone for `lead` seconds, then with the source for `seconds`.
  func run(lead: Double = 4, seconds: Double) -> Result {
    var (background, source) = (self.background, self.source)
    let backgroundGain = Self.gain(of: background, to: Self.backgroundLevel)
    let sourceGain = source.map { Self.gain(of: $0, to: Self.backgroundLevel + decibels) } ?? 0
    var detector = SoundDetector(channels: 1, self.detector)
    let frame = UnsafeMutableBufferPointer<Int16>.allocate(capacity: 960)
    defer { frame.deallocate() }
    var result = Result()
    var (wasNoise, wasCrying) = (false, false)
    for block in 0..<Int((lead + seconds) * 50) {
      let time = Double(block) / 50 - lead
      for index in 0..<960 {
        var sample = background.next() * backgroundGain
        if time >= 0 { sample += (source?.next() ?? 0) * sourceGain }
        frame[index] = Int16(max(-32_768, min(32_767, (sample * 32_768).rounded())))
      }
      let finding = detector.note(UnsafeBufferPointer(frame))
      if finding.noise != nil, !wasNoise { result.noise.append(time) }
      if finding.crying != nil, !wasCrying { result.crying.append(time) }
      (wasNoise, wasCrying) = (finding.noise != nil, finding.crying != nil)
      result.confidence = max(result.confidence, finding.confidence)
    }
    return result
  }

  /// Returns the factor that gives a sound this level within the band, pauses left out.
  static func gain(of generator: some SoundGenerator, to level: Float) -> Float {
    var generator = generator
    var detector = SoundDetector(channels: 1, .init(detectsCrying: false))
    let frame = UnsafeMutableBufferPointer<Int16>.allocate(capacity: 960)
    defer { frame.deallocate() }
    var levels: [Double] = []
    for _ in 0..<400 {
      for index in 0..<960 { frame[index] = Int16(max(-32_768, min(32_767, generator.next() * 8192))) }
      levels.append(detector.note(UnsafeBufferPointer(frame)).level)
    }
    // What is 20 dB below the loudest tenth is a pause.
    let loud = levels.sorted()[levels.count * 9 / 10] - 20
    let powers = levels.filter { $0 > loud }.map { pow(10, $0 / 10) }
    let mean = 10 * log10(powers.reduce(0, +) / Double(max(1, powers.count)))
    return pow(10, (level - Float(mean) - 12.04) / 20)
  }
}
