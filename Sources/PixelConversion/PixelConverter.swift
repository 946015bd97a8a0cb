import CYUV
public import Media

/// Converts pictures of one pixel format and size to NV12 frames of one orientation.
///
/// Rotation is part of the conversion: each sample is read and written once. Only a JPEG is decoded first and then
/// rotated. Neither the converter nor libyuv allocates memory for a picture; libjpeg itself allocates a little.
///
/// One thread at a time uses it. Samples keep their values; the caller sets their meaning as the frame's
/// ``ColorDescription``. Nothing is read beyond a plane's `byteCount`.
public final class PixelConverter: @unchecked Sendable {
  // Sendable: it may move between threads; its scratch memory belongs to the thread that is in `convert`.

  private enum Layout {
    case semiplanar(swapped: Bool, planes: Int)
    case planar(swapped: Bool, planes: Int)
    case packed(PackedUnpacker.Order)
    case grey
    case jpeg
  }

  /// The size of the frames: that of the pictures, or with width and height exchanged.
  public let frameSize: PictureSize
  /// The orientation of the frames.
  public let orientation: Orientation

  private let layout: Layout
  private let size: PictureSize
  private let rotator: PictureRotator?
  private let unpacker: PackedUnpacker?
  private let jpeg: JPEGDecoder?

  /// Returns `true` if the converter supports `format` without libv4l.
  public static func supports(_ format: PixelFormat) -> Bool {
    layout(of: format) != nil
  }

  /// Creates a converter from `format` at the camera's `size`. The frames have the size that `orientation` makes of it.
  ///
  /// - Throws: ``ConversionError``.
  public init(
    from format: PixelFormat, size: PictureSize, orientation: Orientation = .upright
  ) throws(ConversionError) {
    guard let layout = Self.layout(of: format) else { throw .unsupported(format) }
    guard size.isEncodable else { throw .size(size) }
    self.layout = layout
    self.size = size
    self.orientation = orientation
    frameSize = orientation.size(of: size)
    let rotator = orientation == .upright ? nil : PictureRotator(orientation, size: size)
    self.rotator = rotator
    unpacker = if case .packed(let order) = layout { PackedUnpacker(order, size: size, rotator: rotator) } else { nil }
    jpeg = if case .jpeg = layout { try JPEGDecoder(size: size, rotator: rotator) } else { nil }
  }

  /// Converts `picture` into `planes`, which must have ``frameSize``. For a JPEG the first plane's `byteCount` is the
  /// compressed length; its stride has no meaning.
  ///
  /// - Throws: ``ConversionError``; then the contents of `planes` are undefined.
  public func convert(_ picture: SourcePicture, into planes: NV12Planes) throws(ConversionError) {
    guard planes.size == frameSize else { throw .frameSize(planes.size, expected: frameSize) }
    switch layout {
    case .semiplanar(let swapped, let count):
      let (luma, chroma) = try semiplanes(of: picture, required: count)
      put(luma: luma, into: planes)
      put(pairs: chroma, isSwapped: swapped, into: planes)
    case .planar(let swapped, let count):
      let (luma, second, third) = try planarPlanes(of: picture, required: count)
      put(luma: luma, into: planes)
      put(cb: swapped ? third : second, cr: swapped ? second : third, into: planes)
    case .packed:
      try unpacker?.unpack(picture.first, into: planes)
    case .grey:
      put(luma: try picture.first.holding(rows: size.height, width: size.width), into: planes)
      planes.clearChroma()
    case .jpeg:
      try jpeg?.decode(picture.first, into: planes)
    }
  }

  private func put(luma: SourcePlane, into planes: NV12Planes) {
    if let rotator {
      rotator.rotateLuma(luma, rows: 0..<size.height, into: planes)
    } else {
      planes.copyLuma(from: luma)
    }
  }

  private func put(pairs: SourcePlane, isSwapped: Bool, into planes: NV12Planes) {
    if let rotator {
      rotator.rotateChroma(pairs: pairs, isSwapped: isSwapped, rows: 0..<size.height / 2, into: planes)
      return
    }
    let copy = isSwapped ? SwapUVPlane : copyPairs
    copy(
      pairs.base, CInt(pairs.stride), planes.chroma, CInt(planes.chromaStride), CInt(size.width / 2),
      CInt(size.height / 2))
  }

  private func put(cb: SourcePlane, cr: SourcePlane, into planes: NV12Planes) {
    if let rotator {
      rotator.rotateChroma(cb: cb, cr: cr, rows: 0..<size.height / 2, into: planes)
      return
    }
    MergeUVPlane(
      cb.base, CInt(cb.stride), cr.base, CInt(cr.stride), planes.chroma, CInt(planes.chromaStride),
      CInt(size.width / 2), CInt(size.height / 2))
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

  // V4L2's codes of packed 4:2:2 with Cr before Cb, and of luma only.
  private static let yvyu = PixelFormat("YVYU")
  private static let vyuy = PixelFormat("VYUY")
  private static let grey = PixelFormat("GREY")

  /// Returns luma and interleaved chroma, from one memory plane or two.
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

  /// Returns luma and the two chroma planes in the format's order, from one memory plane or three.
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
