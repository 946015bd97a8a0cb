import Media

/// The places of an NV12 picture's planes in a driver's buffer, in one memory plane or in two.
struct NV12Layout {
  private let size: PictureSize
  private let lumaStride: Int
  private let chromaStride: Int
  private let isSplit: Bool

  /// Creates the layout of `format`; nil if its planes cannot hold such a picture.
  init?(_ format: DriverFormat) {
    isSplit = format.pixelFormat == .nm12
    guard isSplit || format.pixelFormat == .nv12, format.planes.count == (isSplit ? 2 : 1) else { return nil }
    size = format.size
    lumaStride = format.planes[0].stride
    chromaStride = format.planes[isSplit ? 1 : 0].stride
    guard lumaStride >= size.width, chromaStride >= size.width else { return nil }
    guard format.planes[0].byteCount >= firstBytes, !isSplit || format.planes[1].byteCount >= secondBytes
    else { return nil }
  }

  /// Returns the planes in `buffer`; nil if the buffer holds fewer bytes than the picture has.
  func planes(of buffer: DequeuedBuffer) -> NV12Planes? {
    guard let luma = buffer.contents.0.base, buffer.contents.0.byteCount >= firstBytes else { return nil }
    var chroma = luma + lumaStride * size.height
    if isSplit {
      guard let base = buffer.contents.1.base, buffer.contents.1.byteCount >= secondBytes else { return nil }
      chroma = base
    }
    return NV12Planes(
      size: size, luma: luma, lumaStride: lumaStride, chroma: chroma, chromaStride: chromaStride)
  }

  /// The smallest number of bytes of the first memory plane; the last row need not be padded.
  private var firstBytes: Int {
    let rows = isSplit ? size.height : size.height + size.height / 2
    return lumaStride * (rows - 1) + size.width
  }

  /// The smallest number of bytes of the second memory plane.
  private var secondBytes: Int { chromaStride * (size.height / 2 - 1) + size.width }
}
