public import Media

/// What a stream is to do with less of, where the machine is too hot or too slow for what was asked.
public struct StreamRestrictions: Hashable, Sendable {
  /// The picture's size, and x264's preset.
  public var encoder: EncoderRestrictions
  /// Frames a second that are encoded at most; nil for as many as come.
  public var maximumFrameRate: Double?
  /// The part of the bitrate that is left, above 0 to 1.
  public var bitrateShare: Double

  /// None, unless told otherwise.
  public init(
    encoder: EncoderRestrictions = EncoderRestrictions(), maximumFrameRate: Double? = nil, bitrateShare: Double = 1
  ) {
    self.encoder = encoder
    self.maximumFrameRate = maximumFrameRate
    self.bitrateShare = bitrateShare
  }

  /// Both: the stricter one of each.
  public func joined(with other: StreamRestrictions) -> StreamRestrictions {
    var joined = self
    joined.encoder.x264Preset = other.encoder.x264Preset ?? encoder.x264Preset
    if let size = other.encoder.maximumSize, size.pixels < encoder.maximumSize?.pixels ?? .max {
      joined.encoder.maximumSize = size
    }
    if let rate = other.maximumFrameRate { joined.maximumFrameRate = min(rate, maximumFrameRate ?? rate) }
    joined.bitrateShare = min(bitrateShare, other.bitrateShare)
    return joined
  }
}
