import Glibc

/// A high-pass filter against steps, wind and mains hum: a Butterworth filter of fourth order, 24 dB an octave, as two
/// biquads in direct form 2 transposed. It reduces 50 Hz by 24 dB, and 60 Hz by 18 dB.
struct HighPassFilter {
  private var sections: (Biquad, Biquad)

  /// The frequency at which 3 dB are lost: below speech and crying, above mains hum of 50 and 60 Hz.
  static let cutoff = 100.0

  /// Creates a filter of `channels` for samples of `rate` a second.
  init(rate: Int, channels: Int, cutoff: Double = HighPassFilter.cutoff) {
    // The poles of fourth order lie in two pairs, at these angles from the real axis.
    let angles = (Double.pi / 8, 3 * Double.pi / 8)
    sections = (
      Biquad(rate: rate, channels: channels, cutoff: cutoff, quality: 1 / (2 * cos(angles.0))),
      Biquad(rate: rate, channels: channels, cutoff: cutoff, quality: 1 / (2 * cos(angles.1)))
    )
  }

  /// Filters one sample of a channel.
  mutating func apply(_ sample: Float, channel: Int) -> Float {
    sections.1.apply(sections.0.apply(sample, channel: channel), channel: channel)
  }
}

/// A high-pass section of second order.
private struct Biquad {
  private let b0, b1, b2, a1, a2: Float
  private var state: [(Float, Float)]

  init(rate: Int, channels: Int, cutoff: Double, quality: Double) {
    let omega = 2 * Double.pi * cutoff / Double(rate)
    let alpha = sin(omega) / (2 * quality)
    let cosine = cos(omega)
    let a0 = 1 + alpha
    b0 = Float((1 + cosine) / 2 / a0)
    b1 = Float(-(1 + cosine) / a0)
    b2 = b0
    a1 = Float(-2 * cosine / a0)
    a2 = Float((1 - alpha) / a0)
    state = Array(repeating: (0, 0), count: channels)
  }

  mutating func apply(_ sample: Float, channel: Int) -> Float {
    let output = b0 * sample + state[channel].0
    state[channel].0 = b1 * sample - a1 * output + state[channel].1
    state[channel].1 = b2 * sample - a2 * output
    return output
  }
}
