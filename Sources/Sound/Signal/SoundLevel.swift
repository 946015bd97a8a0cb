import Glibc

/// The level of sound, in decibels relative to full scale: 0 dBFS is the largest sample, 32,768.
package struct SoundLevel: Hashable, Sendable {
  /// The root mean square. A sine of full scale has −3 dBFS.
  package let rms: Double
  /// The largest sample.
  package let peak: Double

  /// The level of silence, and the least that is reported: 16 bits reach down to −90 dBFS.
  package static let silence = SoundLevel(rms: -100, peak: -100)

  /// Creates a level.
  package init(rms: Double, peak: Double) {
    (self.rms, self.peak) = (rms, peak)
  }

  /// `true` for digital silence: at most the lowest bit changes. Every microphone that records has more noise.
  package var isDigitalSilence: Bool { peak < -90 }

  /// Creates the level of samples whose squares sum up to `squares`.
  init(squares: Double, peak: Int32, count: Int) {
    func decibels(_ share: Double) -> Double { share > 1e-5 ? 20 * log10(share) : Self.silence.rms }
    rms = count > 0 ? decibels((squares / Double(count)).squareRoot() / 32_768) : Self.silence.rms
    self.peak = decibels(Double(peak) / 32_768)
  }
}

/// Measures the level of each window of time, usually a tenth of a second.
package struct LevelMeter {
  private let window: Int
  private var squares = 0.0
  private var peak: Int32 = 0
  private var count = 0

  /// Creates a meter of samples of `rate` a second, all channels counted, with a window of that many seconds.
  package init(rate: Int, window: Double = 0.1) { self.window = Int(Double(rate) * window) }

  /// Notes samples. Returns the level where a window is full.
  package mutating func note(_ samples: UnsafeBufferPointer<Int16>) -> SoundLevel? {
    var level: SoundLevel?
    for sample in samples {
      let value = Int32(sample)
      squares += Double(value * value)
      peak = max(peak, abs(value))
      count += 1
      guard count >= window else { continue }
      level = SoundLevel(squares: squares, peak: peak, count: count)
      (squares, peak, count) = (0, 0, 0)
    }
    return level
  }
}

/// Holds the loudest of the last ten levels.
package struct LevelHold {
  private var levels = InlineArray<10, SoundLevel>(repeating: .silence)
  private var next = 0

  /// Creates a hold of silence.
  package init() {}

  /// Notes a level. Returns the greatest root mean square and the greatest peak of the last ten levels.
  package mutating func note(_ level: SoundLevel) -> SoundLevel {
    levels[next] = level
    next = (next + 1) % levels.count
    var (rms, peak) = (SoundLevel.silence.rms, SoundLevel.silence.peak)
    for index in levels.indices { (rms, peak) = (max(rms, levels[index].rms), max(peak, levels[index].peak)) }
    return SoundLevel(rms: rms, peak: peak)
  }
}
