/// What an encoder is to do otherwise than it was asked for: with less, where the machine is too hot or too slow, and for
/// samples that mean something else, where another camera has come.
public struct EncoderRestrictions: Hashable, Sendable {
  /// The largest picture, laid either way: 1280x720 allows 720x1280 too. Larger ones are scaled down, in their own shape;
  /// nil allows every size.
  public var maximumSize: PictureSize?
  /// x264's preset instead of the configuration's; nil keeps that.
  public var x264Preset: String?
  /// What the samples mean; nil for what the configuration says.
  public var color: ColorDescription?

  /// The restrictions given; none without arguments.
  public init(maximumSize: PictureSize? = nil, x264Preset: String? = nil, color: ColorDescription? = nil) {
    self.maximumSize = maximumSize
    self.x264Preset = x264Preset
    self.color = color
  }

  /// `size`, or the largest of its shape that is allowed, to even samples.
  public func size(of size: PictureSize) -> PictureSize {
    guard let maximumSize else { return size }
    return size.fitted(to: maximumSize)
  }
}

extension PictureSize {
  /// The same size, or scaled down to what fits into `limit` laid either way; even, and at least 16 each way.
  func fitted(to limit: PictureSize) -> PictureSize {
    let (long, short) = (max(width, height), min(width, height))
    let scale = min(
      Double(max(limit.width, limit.height)) / Double(long), Double(min(limit.width, limit.height)) / Double(short))
    guard scale < 1 else { return self }
    func even(_ length: Int) -> Int { max(16, Int((Double(length) * scale / 2).rounded()) * 2) }
    return PictureSize(width: even(width), height: even(height))
  }
}

extension EncoderConfiguration {
  /// The same under `restrictions`, with no more slices than fit.
  public func restricted(by restrictions: EncoderRestrictions) -> EncoderConfiguration {
    var restricted = self
    restricted.size = restrictions.size(of: size)
    restricted.slices = min(slices, max(1, (restricted.size.height + 15) / 16))
    if let preset = restrictions.x264Preset { restricted.x264Preset = preset }
    if let color = restrictions.color { restricted.color = color }
    return restricted
  }
}
