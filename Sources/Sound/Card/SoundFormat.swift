/// The format of samples: signed 16-bit integers in the host's byte order, the channels of one instant side by side.
package struct SoundFormat: Hashable, Sendable, CustomStringConvertible {
  /// Samples a second of each channel.
  package let rate: Int
  /// The number of channels.
  package let channels: Int

  /// Creates a format.
  package init(rate: Int, channels: Int) {
    self.rate = rate
    self.channels = channels
  }

  /// The rate of Opus and of every track of sound.
  package static let trackRate = 48_000

  /// A text such as `48000 Hz mono`.
  package var description: String {
    "\(rate) Hz " + (channels == 1 ? "mono" : channels == 2 ? "stereo" : "\(channels) channels")
  }
}
