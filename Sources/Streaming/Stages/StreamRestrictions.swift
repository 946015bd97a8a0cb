package import Media

/// The restrictions of a stream, where the host is too hot or too slow for the requested stream.
package struct StreamRestrictions: Hashable, Sendable {
  /// The restrictions of the picture's size, and of the effort for it.
  package var encoder: EncoderRestrictions
  /// The most frames a second that are encoded; nil for no limit.
  package var maximumFrameRate: Double?
  /// The part of the bitrate that is left, above 0 to 1.
  package var bitrateShare: Double

  /// Creates restrictions; by default none.
  package init(
    encoder: EncoderRestrictions = EncoderRestrictions(), maximumFrameRate: Double? = nil, bitrateShare: Double = 1
  ) {
    self.encoder = encoder
    self.maximumFrameRate = maximumFrameRate
    self.bitrateShare = bitrateShare
  }

  /// Returns both sets of restrictions together: the stricter one of each.
  package func joined(with other: StreamRestrictions) -> StreamRestrictions {
    var joined = self
    joined.encoder.effort = other.encoder.effort ?? encoder.effort
    if let size = other.encoder.maximumSize, size.pixels < encoder.maximumSize?.pixels ?? .max {
      joined.encoder.maximumSize = size
    }
    if let rate = other.maximumFrameRate { joined.maximumFrameRate = min(rate, maximumFrameRate ?? rate) }
    joined.bitrateShare = min(bitrateShare, other.bitrateShare)
    return joined
  }
}
