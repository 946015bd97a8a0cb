import CYUV
import Media

/// Packed 4:2:2 (YUYV, UYVY, YVYU, VYUY) into NV12, in any orientation; each chroma sample is the mean of two rows'.
///
/// libyuv has a direct way for YUYV and UYVY only. The one for UYVY allocates for every picture, so that the other
/// three go by way of planar chroma, a few rows at a time so that it stays in the cache. So does what is turned,
/// luma too: it is read from memory once, and written there once.
final class PackedUnpacker {
  /// In which order a pair of pixels is packed.
  enum Order {
    case yuyv, yvyu, uyvy, vyuy
  }

  private let order: Order
  private let size: PictureSize
  private let turner: PictureTurner?
  private let scratch: UnsafeMutablePointer<UInt8>
  /// Rows at a time; even. More where they become columns: libyuv interleaves rows of chroma that are no multiple of
  /// its widest vector three times as slowly.
  private let stripRows: Int

  /// One for pictures of `size`, laid anew by `turner` where there is one.
  init(_ order: Order, size: PictureSize, turner: PictureTurner?) {
    self.order = order
    self.size = size
    self.turner = turner
    stripRows = turner?.transposes == true ? 64 : 16
    // Cb and Cr at half width and half height: as much as half the rows of a strip. Luma that is turned comes too.
    let chroma = size.width * stripRows / 2
    let samples = turner == nil ? chroma : chroma + size.width * stripRows
    scratch = .allocate(capacity: samples)
    // Touched, so that the first picture pays for no page fault.
    scratch.initialize(repeating: 0, count: samples)
  }

  deinit {
    scratch.deallocate()
  }

  /// Fills `planes`, which are of the right size, from `source`.
  ///
  /// - Throws: ``ConversionError`` where `source` is too short.
  func unpack(_ source: SourcePlane, into planes: NV12Planes) throws(ConversionError) {
    let source = try source.holding(rows: size.height, width: size.width * 2)
    if case .yuyv = order, turner == nil {
      unpackYUYV(source, into: planes)
    } else {
      unpackStrips(source, into: planes)
    }
  }

  private func unpackYUYV(_ source: SourcePlane, into planes: NV12Planes) {
    // libyuv 1857 spoils the last columns where 18 to 30 remain after the last 32, and older ones may. Columns that
    // are a multiple of its step are right; the last ones come out twice, once with each step.
    let step = size.width < 32 ? 16 : 32
    let whole = size.width / step * step
    unpackYUYV(source, columns: 0..<whole, into: planes)
    if whole < size.width { unpackYUYV(source, columns: size.width - step..<size.width, into: planes) }
  }

  private func unpackYUYV(_ source: SourcePlane, columns: Range<Int>, into planes: NV12Planes) {
    // It refuses null pointers and empty pictures only, of which there are none here.
    _ = YUY2ToNV12(
      source.base + columns.lowerBound * 2, CInt(source.stride), planes.luma + columns.lowerBound,
      CInt(planes.lumaStride), planes.chroma + columns.lowerBound, CInt(planes.chromaStride), CInt(columns.count),
      CInt(size.height))
  }

  private func unpackStrips(_ source: SourcePlane, into planes: NV12Planes) {
    let half = size.width / 2
    let samples = half * stripRows / 2
    let (first, second, turned) = (scratch, scratch + samples, scratch + samples * 2)
    // Where Cr comes first, what libyuv takes for Cb is Cr.
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
      let luma = turner == nil ? planes.luma + row * planes.lumaStride : turned
      let lumaStride = turner == nil ? planes.lumaStride : size.width
      // It refuses null pointers and empty pictures only, of which there are none here.
      _ = unpack(
        source.base + row * source.stride, CInt(source.stride), luma, CInt(lumaStride), first, CInt(half), second,
        CInt(half), CInt(size.width), CInt(rows))
      if let turner {
        turner.turnLuma(
          SourcePlane(base: luma, stride: size.width, byteCount: size.width * rows), rows: row..<row + rows,
          into: planes)
        turner.turnChroma(
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
