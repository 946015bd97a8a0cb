import CYUV
public import Media

/// Converts planar Cb and Cr of any subsampling, from 4:4:4 down, to the interleaved 4:2:0 chroma of an NV12 frame.
///
/// One thread at a time uses it. Its scratch memory is reserved once, and only the part that a picture needs is ever
/// touched. Samples are averaged or interpolated as if sited midway between the luma samples, as in JPEG (JFIF 1.02,
/// page 4). For 4:2:0 nothing is resampled.
public final class ChromaInterleaver: @unchecked Sendable {
  // Sendable: it may move between threads; `scratch` belongs to the thread that is in `interleave`.

  /// The size of the frames in luma samples.
  public let size: PictureSize
  private let scratch: UnsafeMutablePointer<UInt8>

  /// Creates an interleaver for frames of `size`.
  ///
  /// - Throws: ``ConversionError/size(_:)``.
  public init(size: PictureSize) throws(ConversionError) {
    guard size.isEncodable else { throw .size(size) }
    self.size = size
    // A plane of full width and half height between the two steps, then both planes at their final size.
    scratch = .allocate(capacity: size.pixels)
  }

  deinit {
    scratch.deallocate()
  }

  /// Fills the chroma of `planes` from `cb` and `cr`, both of `chroma` samples; at most one per luma sample.
  ///
  /// - Throws: ``ConversionError``; then the chroma of `planes` is unchanged.
  public func interleave(
    cb: SourcePlane, cr: SourcePlane, of chroma: PictureSize, into planes: NV12Planes
  ) throws(ConversionError) {
    guard planes.size == size else { throw .frameSize(planes.size, expected: size) }
    guard (1...size.width).contains(chroma.width), (1...size.height).contains(chroma.height) else {
      throw .size(chroma)
    }
    let cb = try cb.holding(rows: chroma.height, width: chroma.width)
    let cr = try cr.holding(rows: chroma.height, width: chroma.width)
    let (width, height) = (size.width / 2, size.height / 2)

    if chroma == size {
      HalfMergeUVPlane(
        cb.base, CInt(cb.stride), cr.base, CInt(cr.stride), planes.chroma, CInt(planes.chromaStride),
        CInt(size.width), CInt(size.height))
      return
    }
    let final = scratch + size.width * height
    let first = resampled(cb, of: chroma, into: final)
    let second = resampled(cr, of: chroma, into: final + width * height)
    MergeUVPlane(
      first.base, CInt(first.stride), second.base, CInt(second.stride), planes.chroma, CInt(planes.chromaStride),
      CInt(width), CInt(height))
  }

  /// Returns `plane` at half the frame's width and height: `plane` itself if it has that size, else a copy at `target`.
  ///
  /// It scales first vertically, then horizontally. libyuv's single step for both allocates row buffers for every
  /// picture. The two steps allocate none for any subsampling that JPEG and y4m have.
  private func resampled(
    _ plane: SourcePlane, of chroma: PictureSize, into target: UnsafeMutablePointer<UInt8>
  ) -> SourcePlane {
    let (width, height) = (size.width / 2, size.height / 2)
    var (source, stride) = (plane.base, plane.stride)
    if chroma.height != height {
      let between = chroma.width == width ? target : scratch
      ScalePlane(
        source, CInt(stride), CInt(chroma.width), CInt(chroma.height), between, CInt(chroma.width),
        CInt(chroma.width), CInt(height), kFilterBilinear)
      (source, stride) = (UnsafePointer(between), chroma.width)
    }
    if chroma.width == size.width {
      // libyuv halves both dimensions or none: a row with itself makes a picture two rows high.
      for row in 0..<height {
        ScalePlane(
          source + row * stride, 0, CInt(chroma.width), 2, target + row * width, CInt(width), CInt(width), 1,
          kFilterBox)
      }
      (source, stride) = (UnsafePointer(target), width)
    } else if chroma.width != width {
      ScalePlane(
        source, CInt(stride), CInt(chroma.width), CInt(height), target, CInt(width), CInt(width), CInt(height),
        kFilterLinear)
      (source, stride) = (UnsafePointer(target), width)
    }
    return SourcePlane(base: source, stride: stride, byteCount: stride * (height - 1) + width)
  }
}

extension NV12Planes {
  /// Fills the chroma with the value for no colour.
  func clearChroma() {
    SetPlane(chroma, CInt(chromaStride), CInt(size.width), CInt(size.height / 2), 128)
  }

  /// Copies luma from `plane`, which must hold all of it.
  func copyLuma(from plane: SourcePlane) {
    CopyPlane(
      plane.base, CInt(plane.stride), luma, CInt(lumaStride), CInt(size.width), CInt(size.height))
  }
}
