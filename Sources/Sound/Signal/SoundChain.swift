import Glibc

/// The processing of samples between the card's clock and the encoder: the high-pass filter, gain and mute.
package struct SoundChain {
  private var filter: HighPassFilter?
  private let channels: Int
  private var factor: Float = 1

  /// The gain's limits in dB.
  package static let gains = -30.0...30.0

  /// Creates a chain for sound of `channels`.
  package init(channels: Int, usesHighPass: Bool) {
    self.channels = channels
    filter = usesHighPass ? HighPassFilter(rate: SoundFormat.trackRate, channels: channels) : nil
  }

  /// Sets the gain in dB.
  package mutating func setGain(_ decibels: Double) { factor = Float(pow(10, decibels / 20)) }

  /// Changes samples in place. Samples beyond full scale become full scale.
  ///
  /// - Returns: The number of samples that were clipped, here or by the card.
  package mutating func apply(_ samples: UnsafeMutableBufferPointer<Int16>) -> Int {
    var clipped = 0
    for index in samples.indices {
      // The card has clipped where it delivers its largest value.
      let isClipped = samples[index] == .max || samples[index] == .min
      var value = Float(samples[index])
      if let filtered = filter?.apply(value, channel: index % channels) { value = filtered }
      value *= factor
      if isClipped || value > 32_767 || value < -32_768 { clipped += 1 }
      samples[index] = Int16(max(-32_768, min(32_767, value.rounded())))
    }
    return clipped
  }
}
