import CYUV
public import Media

/// Scales NV12 pictures of one size into frames of another: complete, as large as they fit, with black bars if the
/// aspect differs.
///
/// If the picture shrinks, each output sample is the mean of the samples that it covers. If the picture grows, output
/// samples are interpolated. The scaler allocates nothing; libyuv allocates some rows for each picture.
public final class PictureScaler: Sendable {
  /// The size of the pictures.
  public let size: PictureSize
  /// The size of the frames.
  public let frameSize: PictureSize
  /// The picture's place in the frame, in luma samples, all even.
  let content: Area

  /// An upright rectangle in luma samples.
  struct Area: Equatable {
    var x, y, width, height: Int
  }

  /// Creates a scaler from pictures of `size` to frames of `frameSize`.
  ///
  /// - Throws: ``ConversionError/size(_:)`` if either size cannot be encoded.
  public init(from size: PictureSize, to frameSize: PictureSize) throws(ConversionError) {
    for size in [size, frameSize] where !size.isEncodable { throw .size(size) }
    self.size = size
    self.frameSize = frameSize
    content = Self.content(of: size, in: frameSize)
  }

  /// Scales `picture`, which must have ``size``, into `planes`, which must have ``frameSize``. The two may not overlap.
  ///
  /// - Throws: ``ConversionError/frameSize(_:expected:)`` if a size differs, `.corrupt` if libyuv refuses.
  public func scale(_ picture: NV12Planes, into planes: NV12Planes) throws(ConversionError) {
    guard picture.size == size else { throw .frameSize(picture.size, expected: size) }
    guard planes.size == frameSize else { throw .frameSize(planes.size, expected: frameSize) }
    blacken(planes, rows: 0..<content.y, columns: 0..<frameSize.width)
    blacken(planes, rows: content.y + content.height..<frameSize.height, columns: 0..<frameSize.width)
    let rows = content.y..<content.y + content.height
    blacken(planes, rows: rows, columns: 0..<content.x)
    blacken(planes, rows: rows, columns: content.x + content.width..<frameSize.width)
    let result = NV12Scale(
      picture.luma, CInt(picture.lumaStride), picture.chroma, CInt(picture.chromaStride), CInt(size.width),
      CInt(size.height), planes.luma + content.y * planes.lumaStride + content.x, CInt(planes.lumaStride),
      planes.chroma + content.y / 2 * planes.chromaStride + content.x, CInt(planes.chromaStride), CInt(content.width),
      CInt(content.height), kFilterBox)
    guard result == 0 else { throw .corrupt("libyuv does not scale \(size) to \(content.width)x\(content.height)") }
  }

  /// Returns the largest place for `size` in the middle of `frameSize`, at even samples.
  static func content(of size: PictureSize, in frameSize: PictureSize) -> Area {
    // As wide as the frame if the picture is the wider one of the two, else as high.
    let isWider = size.width * frameSize.height >= frameSize.width * size.height
    let width = isWider ? frameSize.width : even(size.width * frameSize.height, by: size.height, limit: frameSize.width)
    let height =
      isWider ? even(size.height * frameSize.width, by: size.width, limit: frameSize.height) : frameSize.height
    return Area(
      x: (frameSize.width - width) / 4 * 2, y: (frameSize.height - height) / 4 * 2, width: width, height: height)
  }

  /// Returns the even number nearest to `dividend / divisor`, from 2 to `limit`.
  private static func even(_ dividend: Int, by divisor: Int, limit: Int) -> Int {
    min(max((dividend + divisor) / (2 * divisor) * 2, 2), limit)
  }

  private func blacken(_ planes: NV12Planes, rows: Range<Int>, columns: Range<Int>) {
    guard !rows.isEmpty, !columns.isEmpty else { return }
    SetPlane(
      planes.luma + rows.lowerBound * planes.lumaStride + columns.lowerBound, CInt(planes.lumaStride),
      CInt(columns.count), CInt(rows.count), 16)
    SetPlane(
      planes.chroma + rows.lowerBound / 2 * planes.chromaStride + columns.lowerBound, CInt(planes.chromaStride),
      CInt(columns.count), CInt(rows.count / 2), 128)
  }
}
