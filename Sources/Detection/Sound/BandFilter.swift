import Glibc

/// A filter of second order, in direct form 2 transposed.
struct Biquad {
  private let b0, b1, b2, a1, a2: Float
  private var (z1, z2): (Float, Float) = (0, 0)

  private init(_ b: (Double, Double, Double), _ a: (Double, Double, Double)) {
    (b0, b1, b2) = (Float(b.0 / a.0), Float(b.1 / a.0), Float(b.2 / a.0))
    (a1, a2) = (Float(a.1 / a.0), Float(a.2 / a.0))
  }

  /// Creates a low-pass filter. `quality` shapes the edge: Butterworth filters of fourth order have 0.5412 and 1.3066.
  static func lowPass(_ frequency: Double, rate: Double, quality: Double) -> Biquad {
    let (cosine, alpha) = terms(frequency, rate, quality)
    return Biquad(((1 - cosine) / 2, 1 - cosine, (1 - cosine) / 2), (1 + alpha, -2 * cosine, 1 - alpha))
  }

  /// Creates a high-pass filter.
  static func highPass(_ frequency: Double, rate: Double, quality: Double) -> Biquad {
    let (cosine, alpha) = terms(frequency, rate, quality)
    return Biquad(((1 + cosine) / 2, -(1 + cosine), (1 + cosine) / 2), (1 + alpha, -2 * cosine, 1 - alpha))
  }

  private static func terms(_ frequency: Double, _ rate: Double, _ quality: Double) -> (Double, Double) {
    let omega = 2 * Double.pi * frequency / rate
    return (cos(omega), sin(omega) / (2 * quality))
  }

  /// Filters one sample.
  @inline(__always)
  mutating func apply(_ sample: Float) -> Float {
    let output = b0 * sample + z1
    z1 = b1 * sample - a1 * output + z2
    z2 = b2 * sample - a2 * output
    return output
  }
}

/// The band in which speech and crying have most of their power: 300–3000 Hz, 24 dB an octave at each edge.
struct BandFilter {
  private var (low1, low2, high1, high2): (Biquad, Biquad, Biquad, Biquad)

  /// Creates a filter for samples of `rate` a second.
  init(rate: Double) {
    low1 = .lowPass(3000, rate: rate, quality: 0.5412)
    low2 = .lowPass(3000, rate: rate, quality: 1.3066)
    high1 = .highPass(300, rate: rate, quality: 0.5412)
    high2 = .highPass(300, rate: rate, quality: 1.3066)
  }

  /// Filters one sample.
  @inline(__always)
  mutating func apply(_ sample: Float) -> Float { high2.apply(high1.apply(low2.apply(low1.apply(sample)))) }
}
