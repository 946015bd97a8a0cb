import Media

extension SmallRendition {
  /// Returns the size of the small rendition of pictures of `size`.
  static func size(of size: PictureSize) -> PictureSize {
    PictureSize(width: size.width / 4 * 2, height: size.height / 4 * 2)
  }

  /// Returns the bits a second of the small rendition of a stream of `bitrate`.
  static func bitrate(of bitrate: Int) -> Int {
    max(EncoderConfiguration.bitrateLimits.lowerBound, Int(Double(bitrate) * bitrateShare))
  }
}
