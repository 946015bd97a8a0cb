public import Media

/// One memory plane of a picture as the device delivered it, lent for the length of a call.
public struct SourcePlane {
  /// The first byte of the first row.
  public let base: UnsafePointer<UInt8>
  /// Bytes from one row to the next.
  public let stride: Int
  /// How many bytes may be read from ``base``; nothing behind them is touched.
  public let byteCount: Int

  /// `byteCount` bytes at `base` whose rows begin every `stride` bytes.
  public init(base: UnsafePointer<UInt8>, stride: Int, byteCount: Int) {
    self.base = base
    self.stride = stride
    self.byteCount = byteCount
  }

  /// The same plane, if it holds `rows` rows of `width` bytes; the last row needs no padding.
  ///
  /// - Throws: ``ConversionError/stride(_:minimum:)`` or ``ConversionError/short(got:expected:)``.
  func holding(rows: Int, width: Int) throws(ConversionError) -> SourcePlane {
    let needed = try Self.bytes(rows: rows, width: width, stride: stride)
    guard byteCount >= needed else { throw .short(got: byteCount, expected: needed) }
    return self
  }

  /// What is left of this plane from `offset` on, as a plane of its own, if it holds `rows` rows of `width` bytes.
  ///
  /// - Throws: ``ConversionError/short(got:expected:)``, with the bytes of the whole buffer.
  func following(offset: Int, stride: Int, rows: Int, width: Int) throws(ConversionError) -> SourcePlane {
    let needed = try Self.bytes(rows: rows, width: width, stride: stride)
    let (total, overflow) = offset.addingReportingOverflow(needed)
    guard !overflow, offset >= 0, byteCount >= total else {
      throw .short(got: byteCount, expected: overflow ? Int.max : total)
    }
    return SourcePlane(base: base + offset, stride: stride, byteCount: byteCount - offset)
  }

  /// Bytes of `rows` rows, the last one without padding.
  private static func bytes(rows: Int, width: Int, stride: Int) throws(ConversionError) -> Int {
    // libyuv counts in 32-bit integers, and so must the whole plane for its row pointers.
    guard stride >= width, stride <= strideLimit else { throw .stride(stride, minimum: width) }
    return stride * (rows - 1) + width
  }

  /// 4 bytes a sample of the widest picture, and as much again for padding.
  private static let strideLimit = 131_072
}

/// One picture as the device delivered it, lent for the length of a call.
///
/// Formats that keep their planes in one buffer (NV12, YU12 and their like) may give one plane: the converter finds
/// the others behind it by V4L2's rule, in which the chroma stride of YU12 and YV12 is half of luma's, and that of
/// NV12 and NV21 the same. NM12, NM21, YM12 and YM21 give one plane for each.
public struct SourcePicture {
  /// Luma, packed samples or compressed bytes.
  public let first: SourcePlane
  /// Chroma: interleaved, or whichever of Cb and Cr the format names first.
  public let second: SourcePlane?
  /// The other chroma plane.
  public let third: SourcePlane?

  /// A picture of up to three planes.
  public init(first: SourcePlane, second: SourcePlane? = nil, third: SourcePlane? = nil) {
    self.first = first
    self.second = second
    self.third = third
  }
}

extension SourcePicture {
  /// An NV12 picture, such as a frame.
  public init(_ planes: NV12Planes) {
    let size = planes.size
    self.init(
      first: SourcePlane(
        base: planes.luma, stride: planes.lumaStride, byteCount: planes.lumaStride * (size.height - 1) + size.width),
      second: SourcePlane(
        base: planes.chroma, stride: planes.chromaStride,
        byteCount: planes.chromaStride * (size.height / 2 - 1) + size.width))
  }
}
