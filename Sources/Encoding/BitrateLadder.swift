public import Media

/// The bitrate that `--bitrate auto` selects.
public enum BitrateLadder {
  /// Returns the bitrate in bits per second for pictures of `size` at `frameRate`. It follows from the size at 30
  /// frames per second and is proportional to the rate, within ``/Media/EncoderConfiguration/bitrateLimits``.
  ///
  /// | pixels | Mbit/s at 30 fps |
  /// |---|---|
  /// | under 0.5 million | 1.5 |
  /// | under 1 million | 3 |
  /// | under 4 million | 6 |
  /// | above | 20 |
  public static func bitrate(for size: PictureSize, at frameRate: FrameRate) -> Int {
    let atThirty: Double =
      switch size.pixels {
      case ..<500_000: 1_500_000
      case ..<1_000_000: 3_000_000
      case ..<4_000_000: 6_000_000
      default: 20_000_000
      }
    let limits = EncoderConfiguration.bitrateLimits
    return min(limits.upperBound, max(limits.lowerBound, Int(atThirty * frameRate.framesPerSecond / 30)))
  }
}
