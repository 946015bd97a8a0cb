import CAVCodec
import Media
import PixelConversion
import Platform

/// A picture of libavcodec's, lent until the decoder is called again.
struct CodecPicture {
  private let samples: UnsafeMutablePointer<AVFrame>
  private let properties: UnsafeMutablePointer<AVFrame>

  /// Creates a picture with the memory of `samples` and the properties of `frame`; both are the same, unless the samples were
  /// copied from hardware.
  init(_ samples: UnsafeMutablePointer<AVFrame>, of frame: UnsafeMutablePointer<AVFrame>) {
    (self.samples, properties) = (samples, frame)
  }

  /// The surface of the driver, which the value holds; nil for samples in memory.
  var surface: DriverSurface? { DriverSurface(properties) }

  /// The size after cropping.
  var size: PictureSize {
    PictureSize(width: Int(properties.pointee.width), height: Int(properties.pointee.height))
  }

  /// The time stamp of the access unit.
  var timestamp: Int64 { properties.pointee.pts }

  /// `true` if libavcodec had to conceal a part, or a reference was missing.
  var isDamaged: Bool {
    properties.pointee.decode_error_flags != 0 || properties.pointee.flags & nightjar_av_frame_is_corrupt != 0
  }

  /// The colour description of the samples.
  var color: ColorDescription {
    ColorDescription(
      primaries: UInt8(clamping: properties.pointee.color_primaries.rawValue),
      transfer: UInt8(clamping: properties.pointee.color_trc.rawValue),
      matrix: UInt8(clamping: properties.pointee.colorspace.rawValue),
      isFullRange: properties.pointee.color_range == AVCOL_RANGE_JPEG)
  }

  /// The format for the converter; nil for samples that are not delivered.
  var format: PixelFormat? {
    switch AVPixelFormat(rawValue: samples.pointee.format) {
    case AV_PIX_FMT_YUV420P, AV_PIX_FMT_YUVJ420P: .ym12
    case AV_PIX_FMT_NV12: .nm12
    case AV_PIX_FMT_GRAY8: PixelFormat("GREY")
    default: nil
    }
  }

  /// The name of the samples' format, for people.
  var formatName: String {
    av_get_pix_fmt_name(AVPixelFormat(rawValue: samples.pointee.format)).map { String(cString: $0) } ?? "unknown"
  }

  /// The planes for the converter; nil where one is missing or its rows are bottom-up.
  var source: SourcePicture? {
    let data = samples.pointee.data
    let strides = samples.pointee.linesize
    func plane(_ base: UnsafeMutablePointer<UInt8>?, _ stride: CInt, _ rows: Int, _ width: Int) -> SourcePlane? {
      guard let base, Int(stride) >= width else { return nil }
      return SourcePlane(base: base, stride: Int(stride), byteCount: Int(stride) * (rows - 1) + width)
    }
    let (width, height) = (size.width, size.height)
    guard let first = plane(data.0, strides.0, height, width) else { return nil }
    switch format {
    case PixelFormat.nm12:
      return plane(data.1, strides.1, height / 2, width).map { SourcePicture(first: first, second: $0) }
    case PixelFormat.ym12:
      guard let second = plane(data.1, strides.1, height / 2, width / 2),
        let third = plane(data.2, strides.2, height / 2, width / 2)
      else { return nil }
      return SourcePicture(first: first, second: second, third: third)
    default: return SourcePicture(first: first)
    }
  }
}

/// The frames of one size into which pictures of one format are copied.
final class PictureOutput {
  private let pool: FramePool
  private let converter: PixelConverter
  private let format: PixelFormat

  /// Creates the pool of frames.
  ///
  /// - Throws: ``DecoderError/memory``; ``DecoderError/pictureSize(_:limit:)`` for an odd or tiny size.
  init(size: PictureSize, format: PixelFormat, capacity: Int) throws(DecoderError) {
    self.format = format
    do {
      converter = try PixelConverter(from: format, size: size)
      pool = try FramePool(size: size, capacity: capacity)
    } catch let error as FramePoolError {
      if case .memory = error { throw .memory }
      throw .pictureSize(size, limit: "even sizes of at least 16x16 are decoded")
    } catch {
      throw .pictureSize(size, limit: "even sizes of at least 16x16 are decoded")
    }
  }

  /// Returns `true` if pictures like `picture` fit.
  func fits(_ picture: CodecPicture) -> Bool { pool.size == picture.size && format == picture.format }

  /// Returns a copy of `picture`, with the driver's surface if that is kept; nil where all frames are in use.
  func copy(_ picture: CodecPicture, captured: Instant, keepsSurface: Bool) throws(DecoderError) -> DecodedPicture? {
    guard let source = picture.source else { throw .samples("\(picture.formatName) samples") }
    guard
      let frame = pool.checkout(
        color: picture.color, timestamp: Instant(nanoseconds: picture.timestamp), captured: captured)
    else { return nil }
    do throws(ConversionError) {
      try converter.convert(source, into: frame.planes)
    } catch {
      throw .samples("\(error)")
    }
    return DecodedPicture(frame, surface: keepsSurface ? picture.surface : nil)
  }
}
