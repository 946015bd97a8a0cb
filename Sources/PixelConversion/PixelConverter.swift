import CYUV
public import Media

/// Pictures of one pixel format and size into NV12 frames.
///
/// It is used by one thread at a time. Samples keep their values: what they mean is told by the frame's
/// ``ColorDescription``, which is the caller's to set. Nothing is read beyond a plane's `byteCount`.
public final class PixelConverter: @unchecked Sendable {
  // Sendable: it may move between threads; its scratch memory belongs to whichever one is in `convert`.

  private enum Layout {
    case semiplanar(swapped: Bool, planes: Int)
    case planar(swapped: Bool, planes: Int)
    case packed(PackedUnpacker.Order)
    case grey
    case jpeg
  }

  private let layout: Layout
  private let size: PictureSize
  private let unpacker: PackedUnpacker?
  private let jpeg: JPEGDecoder?

  /// Whether `format` is converted here, without libv4l.
  public static func supports(_ format: PixelFormat) -> Bool {
    layout(of: format) != nil
  }

  /// A converter from `format` at `size`.
  ///
  /// - Throws: ``ConversionError``.
  public init(from format: PixelFormat, size: PictureSize) throws(ConversionError) {
    guard let layout = Self.layout(of: format) else { throw .unsupported(format) }
    guard size.isEncodable else { throw .size(size) }
    self.layout = layout
    self.size = size
    unpacker = if case .packed(let order) = layout { PackedUnpacker(order, size: size) } else { nil }
    jpeg = if case .jpeg = layout { try JPEGDecoder(size: size) } else { nil }
  }

  /// Converts `picture` into `planes`, which must be of the converter's size. Of a JPEG the first plane's
  /// `byteCount` is the compressed length, and its stride means nothing.
  ///
  /// - Throws: ``ConversionError``; then the contents of `planes` are of no use.
  public func convert(_ picture: SourcePicture, into planes: NV12Planes) throws(ConversionError) {
    guard planes.size == size else { throw .frameSize(planes.size, expected: size) }
    switch layout {
    case .semiplanar(let swapped, let count):
      let (luma, chroma) = try semiplanes(of: picture, required: count)
      planes.copyLuma(from: luma)
      let copy = swapped ? SwapUVPlane : copyPairs
      copy(
        chroma.base, CInt(chroma.stride), planes.chroma, CInt(planes.chromaStride), CInt(size.width / 2),
        CInt(size.height / 2))
    case .planar(let swapped, let count):
      let (luma, second, third) = try planarPlanes(of: picture, required: count)
      let (cb, cr) = swapped ? (third, second) : (second, third)
      planes.copyLuma(from: luma)
      MergeUVPlane(
        cb.base, CInt(cb.stride), cr.base, CInt(cr.stride), planes.chroma, CInt(planes.chromaStride),
        CInt(size.width / 2), CInt(size.height / 2))
    case .packed:
      try unpacker?.unpack(picture.first, into: planes)
    case .grey:
      planes.copyLuma(from: try picture.first.holding(rows: size.height, width: size.width))
      planes.clearChroma()
    case .jpeg:
      try jpeg?.decode(picture.first, into: planes)
    }
  }

  private static func layout(of format: PixelFormat) -> Layout? {
    switch format {
    case .nv12: .semiplanar(swapped: false, planes: 1)
    case .nm12: .semiplanar(swapped: false, planes: 2)
    case .nv21: .semiplanar(swapped: true, planes: 1)
    case .nm21: .semiplanar(swapped: true, planes: 2)
    case .yu12: .planar(swapped: false, planes: 1)
    case .ym12: .planar(swapped: false, planes: 3)
    case .yv12: .planar(swapped: true, planes: 1)
    case .ym21: .planar(swapped: true, planes: 3)
    case .yuyv: .packed(.yuyv)
    case .uyvy: .packed(.uyvy)
    case .mjpeg, .jpeg: .jpeg
    case yvyu: .packed(.yvyu)
    case vyuy: .packed(.vyuy)
    case grey: .grey
    default: nil
    }
  }

  // V4L2's codes of packed 4:2:2 with Cr before Cb, and of luma alone.
  private static let yvyu = PixelFormat("YVYU")
  private static let vyuy = PixelFormat("VYUY")
  private static let grey = PixelFormat("GREY")

  /// Luma and interleaved chroma, wherever they lie.
  private func semiplanes(
    of picture: SourcePicture, required: Int
  ) throws(ConversionError) -> (luma: SourcePlane, chroma: SourcePlane) {
    let luma = try picture.first.holding(rows: size.height, width: size.width)
    if let second = picture.second {
      return (luma, try second.holding(rows: size.height / 2, width: size.width))
    }
    guard required == 1 else { throw .planes(got: 1, expected: required) }
    let chroma = try luma.following(
      offset: luma.stride * size.height, stride: luma.stride, rows: size.height / 2, width: size.width)
    return (luma, chroma)
  }

  /// Luma and the two chroma planes in the order of the format, wherever they lie.
  private func planarPlanes(
    of picture: SourcePicture, required: Int
  ) throws(ConversionError) -> (luma: SourcePlane, second: SourcePlane, third: SourcePlane) {
    let (width, height) = (size.width / 2, size.height / 2)
    let luma = try picture.first.holding(rows: size.height, width: size.width)
    if let second = picture.second {
      guard let third = picture.third else { throw .planes(got: 2, expected: 3) }
      return (
        luma, try second.holding(rows: height, width: width), try third.holding(rows: height, width: width)
      )
    }
    guard required == 1 else { throw .planes(got: 1, expected: required) }
    let (stride, start) = (luma.stride / 2, luma.stride * size.height)
    return (
      luma, try luma.following(offset: start, stride: stride, rows: height, width: width),
      try luma.following(offset: start + stride * height, stride: stride, rows: height, width: width)
    )
  }
}

/// `CopyPlane` with `SwapUVPlane`'s parameters: `width` counts pairs.
private func copyPairs(
  _ source: UnsafePointer<UInt8>?, _ sourceStride: CInt, _ target: UnsafeMutablePointer<UInt8>?, _ stride: CInt,
  _ width: CInt, _ height: CInt
) {
  CopyPlane(source, sourceStride, target, stride, width * 2, height)
}
