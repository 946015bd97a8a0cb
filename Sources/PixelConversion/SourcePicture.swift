public import Media

/// One memory plane of a picture as the device delivered it, valid for the duration of a call.
public struct SourcePlane {
  /// The first byte of the first row.
  public let base: UnsafePointer<UInt8>
  /// The number of bytes from one row to the next.
  public let stride: Int
  /// The number of bytes that may be read from ``base``; no byte after them is touched.
  public let byteCount: Int

  /// Creates a plane of `byteCount` bytes at `base`, whose rows begin every `stride` bytes.
  public init(base: UnsafePointer<UInt8>, stride: Int, byteCount: Int) {
    self.base = base
    self.stride = stride
    self.byteCount = byteCount
  }

  /// Returns this plane if it holds `rows` rows of `width` bytes; the last row needs no padding.
  ///
  /// - Throws: ``ConversionError/stride(_:minimum:)`` or ``ConversionError/short(got:expected:)``.
  func holding(rows: Int, width: Int) throws(ConversionError) -> SourcePlane {
    let needed = try Self.bytes(rows: rows, width: width, stride: stride)
    guard byteCount >= needed else { throw .short(got: byteCount, expected: needed) }
    return self
  }

  /// Returns the rest of this plane from `offset` on as a plane of its own, if it holds `rows` rows of `width` bytes.
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

  /// Returns the number of bytes of `rows` rows, the last one without padding.
  private static func bytes(rows: Int, width: Int, stride: Int) throws(ConversionError) -> Int {
    // libyuv counts in 32-bit integers, and the whole plane must fit them for its row pointers.
    guard stride >= width, stride <= strideLimit else { throw .stride(stride, minimum: width) }
    return stride * (rows - 1) + width
  }

  /// 4 bytes per sample of the widest picture, and as much again for padding.
  private static let strideLimit = 131_072
}

/// One picture as the device delivered it, valid for the duration of a call.
///
/// Formats that keep their planes in one buffer (NV12, YU12 and similar ones) may give one plane. The converter finds
/// the other planes after it by V4L2's rule: the chroma stride of YU12 and YV12 is half of luma's, that of NV12 and
/// NV21 equals luma's. NM12, NM21, YM12 and YM21 give one plane each for luma and chroma.
public struct SourcePicture {
  /// Luma, packed samples or compressed bytes.
  public let first: SourcePlane
  /// Interleaved chroma, or the one of Cb and Cr that the format names first.
  public let second: SourcePlane?
  /// The other chroma plane.
  public let third: SourcePlane?

  /// Creates a picture of up to three planes.
  public init(first: SourcePlane, second: SourcePlane? = nil, third: SourcePlane? = nil) {
    self.first = first
    self.second = second
    self.third = third
  }
}

extension SourcePicture {
  /// Creates an NV12 picture, such as one from a frame.
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
