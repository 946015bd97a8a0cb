import Foundation
import TestSupport

/// A sound without end, of 48,000 samples a second, of about full scale.
protocol SoundGenerator {
  mutating func next() -> Float
}

/// Steady noise of a room: white noise through a low-pass filter of first order.
struct RoomNoise: SoundGenerator {
  private var random: SeededGenerator
  private var state: Float = 0
  private let part: Float

  /// - Parameter cutoff: the low-pass filter's edge in Hz; nil for white noise.
  init(seed: UInt64, cutoff: Float? = 1500) {
    random = SeededGenerator(seed: seed)
    part = cutoff.map { 1 - exp(-2 * .pi * $0 / 48_000) } ?? 1
  }

  mutating func next() -> Float {
    // Sixteen bits are enough for noise, and four values come of one number.
    state += part * (random.unit() - state)
    return state * 0.5
  }
}

extension SeededGenerator {
  /// Returns a number of −1…1.
  mutating func unit() -> Float { Float(Int32(truncatingIfNeeded: next() >> 32)) / 2_147_483_648 }

  /// Returns a number of a range.
  mutating func float(_ range: ClosedRange<Float>) -> Float {
    range.lowerBound + (unit() + 1) / 2 * (range.upperBound - range.lowerBound)
  }
}

/// A fan: low noise, and the harmonics of its blades, which swell slowly.
struct Fan: SoundGenerator {
  private var noise: RoomNoise
  private var sample = 0
  private let blades: Float

  init(seed: UInt64) {
    noise = RoomNoise(seed: seed, cutoff: 700)
    var random = SeededGenerator(seed: seed)
    blades = random.float(60...160)
  }

  mutating func next() -> Float {
    sample += 1
    let time = Float(sample % 4_800_000) / 48_000
    var hum: Float = 0
    for harmonic in 1...5 { hum += sin(2 * .pi * blades * Float(harmonic) * time) / Float(harmonic * harmonic) }
    return noise.next() * (1 + 0.2 * sin(2 * .pi * 0.7 * time)) + 0.05 * hum
  }
}

/// Rain: white noise, and drops on a window sill.
struct Rain: SoundGenerator {
  private var random: SeededGenerator
  private var drop: Float = 0
  private var phase: Float = 0
  private var tone: Float = 0

  init(seed: UInt64) { random = SeededGenerator(seed: seed) }

  mutating func next() -> Float {
    let noise = random.unit()
    if noise > 0.9988 {
      drop = random.float(0.2...0.9)
      tone = random.float(700...3500)
    }
    drop *= 0.9985
    phase += tone / 48_000
    phase -= phase.rounded(.down)
    return 0.12 * noise + 0.5 * drop * sin(2 * .pi * phase)
  }
}

/// Music of one voice: the notes of a scale, struck (they decay), or bowed with a vibrato, or blown without.
struct Music: SoundGenerator {
  enum Instrument: CaseIterable { case piano, violin, flute, chords }

  private var random: SeededGenerator
  private let instrument: Instrument
  private var frequencies: [Float] = [440]
  private var phases: [Float] = [0]
  private var (age, length) = (0, 0)
  private static let scale: [Float] = [
    261.6, 293.7, 329.6, 349.2, 392, 440, 493.9, 523.3, 587.3, 659.3, 220, 698.5,
  ]

  init(_ instrument: Instrument, seed: UInt64) {
    random = SeededGenerator(seed: seed)
    self.instrument = instrument
  }

  mutating func next() -> Float {
    if age >= length {
      length = Int(random.float(0.25...1.6) * 48_000)
      age = 0
      let count = instrument == .chords ? 3 : 1
      frequencies = (0..<count).map { _ in Self.scale[Int(random.next() % UInt64(Self.scale.count))] }
      phases = frequencies.map { _ in 0 }
    }
    age += 1
    let time = Float(age) / 48_000
    let rest = Float(length - age) / 48_000
    let vibrato = instrument == .violin ? 1 + 0.015 * sin(2 * .pi * 5.6 * time) : 1
    let decays = instrument == .piano || instrument == .chords
    let envelope = min(1, time * 50) * min(1, rest * 20) * (decays ? exp(-2 * time) : 1)
    var sum: Float = 0
    for index in frequencies.indices {
      phases[index] += frequencies[index] * vibrato / 48_000
      phases[index] -= phases[index].rounded(.down)
      for harmonic in 1...(instrument == .flute ? 3 : 7) {
        sum += sin(2 * .pi * phases[index] * Float(harmonic)) / Float(harmonic)
      }
    }
    return 0.25 * envelope * sum / Float(frequencies.count)
  }
}

/// A child that cries: bursts whose fundamental rises and falls, with jitter, the resonances of a short vocal tract, and
/// breaths between them that are partly heard.
///
/// Fundamental, length of bursts and breaths, and the arcs of the melody are those that the literature describes: see
/// docs/detection.md.
struct Cry: SoundGenerator {
  private var random: SeededGenerator
  private var (age, length, breath) = (0, 0, 0)
  private var (base, rise, skew): (Float, Float, Float) = (0, 0, 0)
  private var jitter: Float = 0
  private var phase: Float = 0
  private var gains = [Float](repeating: 0, count: 10)

  init(seed: UInt64) { random = SeededGenerator(seed: seed) }

  mutating func next() -> Float {
    if age >= length + breath { begin() }
    age += 1
    guard age <= length else {
      // The breath in is noise, and far softer.
      return 0.01 * random.unit()
    }
    let part = Float(age) / Float(length)
    if age % 480 == 0 { jitter = 0.7 * jitter + 0.004 * random.unit() }
    let melody = sin(.pi * pow(part, skew))
    let frequency = base * (1 + rise * melody + jitter)
    phase += frequency / 48_000
    phase -= phase.rounded(.down)
    if age % 480 == 1 { shape(frequency) }
    let (step, cosine) = (2 * Float.pi * phase, 2 * cos(2 * .pi * phase))
    // sin((n+1)x) = 2 cos(x) sin(nx) - sin((n-1)x).
    var (former, now): (Float, Float) = (0, sin(step))
    var sum: Float = 0
    for gain in gains {
      sum += gain * now
      (former, now) = (now, cosine * now - former)
    }
    return 0.3 * sum * min(1, part * 12) * min(1, (1 - part) * 8)
  }

  private mutating func begin() {
    age = 0
    length = Int(random.float(0.5...2) * 48_000)
    breath = Int(random.float(0.2...0.7) * 48_000)
    base = random.float(330...480)
    rise = random.float(0.08...0.3)
    skew = random.float(0.6...1.6)
  }

  /// Sets the strength of each harmonic by two resonances.
  private mutating func shape(_ frequency: Float) {
    for index in gains.indices {
      let harmonic = frequency * Float(index + 1)
      func resonance(_ center: Float, _ width: Float) -> Float { 1 / (1 + pow((harmonic - center) / width, 2)) }
      gains[index] = 0.15 / Float(index + 1) + resonance(1100, 350) + 0.5 * resonance(3000, 600)
    }
  }
}

/// A recording that is played again and again.
struct Recording: SoundGenerator {
  let samples: [Float]
  private var place = 0

  init(_ samples: [Float]) { self.samples = samples }

  mutating func next() -> Float {
    place = place + 1 < samples.count ? place + 1 : 0
    return samples[place]
  }
}
