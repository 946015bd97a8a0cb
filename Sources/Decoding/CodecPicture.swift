package import CAVCodec
package import Media
import PixelConversion

/// A picture of libavcodec's, lent until the decoder is called again.
package struct CodecPicture {
  private let samples: UnsafeMutablePointer<AVFrame>
  private let properties: UnsafeMutablePointer<AVFrame>

  /// Creates a picture with the memory of `samples` and the properties of `frame`; both are the same, unless the samples were
  /// copied from hardware.
  package init(_ samples: UnsafeMutablePointer<AVFrame>, of frame: UnsafeMutablePointer<AVFrame>) {
    (self.samples, properties) = (samples, frame)
  }

  /// The surface of the driver, which the value holds; nil for samples in memory.
  var surface: DriverSurface? { DriverSurface(properties) }

  /// The columns at the left and the rows at the top that libavcodec has not cropped: those of a driver's surface.
  private var cropping: (left: Int, top: Int) {
    (Int(properties.pointee.crop_left), Int(properties.pointee.crop_top))
  }

  /// The size after cropping.
  package var size: PictureSize {
    PictureSize(
      width: Int(properties.pointee.width) - cropping.left, height: Int(properties.pointee.height) - cropping.top)
  }

  /// The number of the access unit.
  var number: Int64 { properties.pointee.pts }

  /// `true` if a reference was missing, or libavcodec found another fault. What it says of the slices means nothing while its
  /// concealment is off.
  var isDamaged: Bool {
    properties.pointee.decode_error_flags & ~nightjar_av_error_slices != 0
      || properties.pointee.flags & nightjar_av_frame_is_corrupt != 0
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
  package var format: PixelFormat? {
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
    func plane(
      _ base: UnsafeMutablePointer<UInt8>?, _ stride: CInt, _ rows: Int, _ width: Int, from: (left: Int, top: Int)
    ) -> SourcePlane? {
      let stride = Int(stride)
      guard let base, stride >= from.left + width else { return nil }
      return SourcePlane(
        base: base + from.top * stride + from.left, stride: stride, byteCount: stride * (rows - 1) + width)
    }
    let (width, height) = (size.width, size.height)
    let (left, top) = cropping
    guard width > 0, height > 0, let first = plane(data.0, strides.0, height, width, from: cropping) else { return nil }
    switch format {
    case PixelFormat.nm12:
      // Both samples of chroma lie side by side.
      return plane(data.1, strides.1, height / 2, width, from: (left / 2 * 2, top / 2)).map {
        SourcePicture(first: first, second: $0)
      }
    case PixelFormat.ym12:
      let half = (left / 2, top / 2)
      guard let second = plane(data.1, strides.1, height / 2, width / 2, from: half),
        let third = plane(data.2, strides.2, height / 2, width / 2, from: half)
      else { return nil }
      return SourcePicture(first: first, second: second, third: third)
    default: return SourcePicture(first: first)
    }
  }
}
