import CYUV
import Media

/// Converts packed 4:2:2 (YUYV, UYVY, YVYU, VYUY) to NV12 in any orientation. Each chroma sample is the mean of two
/// rows' samples.
///
/// libyuv converts only YUYV and UYVY directly, and its UYVY function allocates for every picture. So the other three
/// go through planar chroma, a few rows at a time, so that it stays in the cache. Rotated pictures take that path too,
/// with their luma: each sample is read from memory once and written to memory once.
final class PackedUnpacker {
  /// The order in which a pair of pixels is packed.
  enum Order {
    case yuyv, yvyu, uyvy, vyuy
  }

  private let order: Order
  private let size: PictureSize
  private let rotator: PictureRotator?
  private let scratch: UnsafeMutablePointer<UInt8>
  /// The number of rows at a time; even. It is larger if rows become columns: libyuv interleaves rows of chroma three
  /// times as slowly if their length is no multiple of its widest vector.
  private let stripRows: Int

  /// Creates an unpacker for pictures of `size`, which `rotator` rotates if it is not nil.
  init(_ order: Order, size: PictureSize, rotator: PictureRotator?) {
    self.order = order
    self.size = size
    self.rotator = rotator
    stripRows = rotator?.transposes == true ? 64 : 16
    // Cb and Cr at half width and half height: as much as half the rows of a strip. Rotated luma comes in addition.
    let chroma = size.width * stripRows / 2
    let samples = rotator == nil ? chroma : chroma + size.width * stripRows
    scratch = .allocate(capacity: samples)
    // Touches the memory, so that the first picture causes no page fault.
    scratch.initialize(repeating: 0, count: samples)
  }

  deinit {
    scratch.deallocate()
  }

  /// Fills `planes`, which have the right size, from `source`.
  ///
  /// - Throws: ``ConversionError`` if `source` is too short.
  func unpack(_ source: SourcePlane, into planes: NV12Planes) throws(ConversionError) {
    let source = try source.holding(rows: size.height, width: size.width * 2)
    if case .yuyv = order, rotator == nil {
      unpackYUYV(source, into: planes)
    } else {
      unpackStrips(source, into: planes)
    }
  }

  private func unpackYUYV(_ source: SourcePlane, into planes: NV12Planes) {
    // libyuv 1857 spoils the last columns if 18 to 30 remain after the last 32, and older versions may do so too.
    // Columns that are a multiple of its step are right. The last ones are converted twice, once with each step.
    let step = size.width < 32 ? 16 : 32
    let whole = size.width / step * step
    unpackYUYV(source, columns: 0..<whole, into: planes)
    if whole < size.width { unpackYUYV(source, columns: size.width - step..<size.width, into: planes) }
  }

  private func unpackYUYV(_ source: SourcePlane, columns: Range<Int>, into planes: NV12Planes) {
    // libyuv refuses only null pointers and empty pictures, which do not occur here.
    _ = YUY2ToNV12(
      source.base + columns.lowerBound * 2, CInt(source.stride), planes.luma + columns.lowerBound,
      CInt(planes.lumaStride), planes.chroma + columns.lowerBound, CInt(planes.chromaStride), CInt(columns.count),
      CInt(size.height))
  }

  private func unpackStrips(_ source: SourcePlane, into planes: NV12Planes) {
    let half = size.width / 2
    let samples = half * stripRows / 2
    let (first, second, turned) = (scratch, scratch + samples, scratch + samples * 2)
    // If Cr comes first, libyuv takes Cr for Cb.
    let (isUYVY, isSwapped) =
      switch order {
      case .yuyv: (false, false)
      case .yvyu: (false, true)
      case .uyvy: (true, false)
      case .vyuy: (true, true)
      }
    let (cb, cr) = isSwapped ? (second, first) : (first, second)
    let unpack = isUYVY ? UYVYToI420 : YUY2ToI420
    for row in stride(from: 0, to: size.height, by: stripRows) {
      let rows = min(stripRows, size.height - row)
      let luma = rotator == nil ? planes.luma + row * planes.lumaStride : turned
      let lumaStride = rotator == nil ? planes.lumaStride : size.width
      // libyuv refuses only null pointers and empty pictures, which do not occur here.
      _ = unpack(
        source.base + row * source.stride, CInt(source.stride), luma, CInt(lumaStride), first, CInt(half), second,
        CInt(half), CInt(size.width), CInt(rows))
      if let rotator {
        rotator.rotateLuma(
          SourcePlane(base: luma, stride: size.width, byteCount: size.width * rows), rows: row..<row + rows,
          into: planes)
        rotator.rotateChroma(
          cb: SourcePlane(base: cb, stride: half, byteCount: samples),
          cr: SourcePlane(base: cr, stride: half, byteCount: samples), rows: row / 2..<(row + rows) / 2, into: planes)
      } else {
        MergeUVPlane(
          cb, CInt(half), cr, CInt(half), planes.chroma + row / 2 * planes.chromaStride, CInt(planes.chromaStride),
          CInt(half), CInt(rows / 2))
      }
    }
  }
}
