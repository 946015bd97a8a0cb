public import Media

/// The bitrate that `--bitrate auto` stands for.
public enum BitrateLadder {
  /// Bits a second for pictures of `size` at `frameRate`: by size at 30 frames a second, and in proportion to the
  /// rate; within ``/Media/EncoderConfiguration/bitrateLimits``.
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
