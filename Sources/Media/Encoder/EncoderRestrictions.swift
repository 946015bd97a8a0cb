/// Changes to an encoder's configuration at run time: a lower size or effort where the machine is too hot or too slow,
/// another colour description where the camera has changed, the quality level that the hardware has time for, and the threads that
/// the host has processors for.
public struct EncoderRestrictions: Hashable, Sendable {
  /// The size limit in either orientation: 1280x720 allows 720x1280 too. Larger pictures are scaled down and keep their
  /// aspect ratio; nil allows every size.
  public var maximumSize: PictureSize?
  /// The effort for a picture, which overrides the configuration's; nil keeps that one.
  public var effort: EncodingEffort?
  /// The colour description of the samples; nil keeps the configuration's.
  public var color: ColorDescription?
  /// VA-API's quality level, which overrides the configuration's; nil keeps that one. Software ignores it.
  public var vaapiQuality: Int?
  /// The number of x264's sliced threads, which overrides the configuration's; nil keeps that one. Hardware ignores it.
  public var threads: Int?

  /// Creates restrictions; without arguments there are none.
  public init(
    maximumSize: PictureSize? = nil, effort: EncodingEffort? = nil, color: ColorDescription? = nil,
    vaapiQuality: Int? = nil, threads: Int? = nil
  ) {
    self.maximumSize = maximumSize
    self.effort = effort
    self.color = color
    self.vaapiQuality = vaapiQuality
    self.threads = threads
  }

  /// Returns `size`, or the largest allowed size of the same aspect ratio, rounded to even samples.
  public func size(of size: PictureSize) -> PictureSize {
    guard let maximumSize else { return size }
    return size.fitted(to: maximumSize)
  }
}

extension PictureSize {
  /// Returns this size, or a smaller one that fits into `limit` in either orientation; even, and at least 16 each way.
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
  /// Returns this configuration under `restrictions`, with no more slices than fit.
  public func restricted(by restrictions: EncoderRestrictions) -> EncoderConfiguration {
    var restricted = self
    restricted.size = restrictions.size(of: size)
    restricted.slices = min(slices, max(1, (restricted.size.height + 15) / 16))
    if let effort = restrictions.effort { restricted.effort = effort }
    if let color = restrictions.color { restricted.color = color }
    if let level = restrictions.vaapiQuality { restricted.vaapiQuality = level }
    if let threads = restrictions.threads { restricted.threads = threads }
    return restricted
  }
}
