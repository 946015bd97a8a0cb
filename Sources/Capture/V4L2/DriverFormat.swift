package import CLinux
package import Media
import PixelConversion

/// The format that a driver granted, in the single- or multi-planar API.
package struct DriverFormat: Hashable {
  /// One plane of memory.
  package struct Plane: Hashable {
    /// The number of bytes from one row to the next; 0 for compressed pictures.
    var stride: Int
    /// The largest number of bytes of a picture.
    var byteCount: Int

    /// Creates a plane.
    package init(stride: Int, byteCount: Int) {
      (self.stride, self.byteCount) = (stride, byteCount)
    }
  }

  /// The picture's size.
  var size: PictureSize
  /// The pixel format.
  package var pixelFormat: PixelFormat
  /// `enum v4l2_field`.
  var field: UInt32
  /// The memory planes, 1…3.
  package var planes: [Plane]
  /// The meaning of the samples.
  package var color: CameraColor

  /// Creates a format with the answers of a driver.
  package init(
    size: PictureSize, pixelFormat: PixelFormat, field: UInt32, planes: [Plane], color: CameraColor
  ) {
    self.size = size
    self.pixelFormat = pixelFormat
    self.field = field
    self.planes = planes
    self.color = color
  }

  /// The largest plausible number of bytes of a plane: 8 bytes for each pixel of the largest picture would be 2 GiB.
  package static let planeLimit = 1 << 30

  /// Returns the argument that requests the format from the driver.
  package static func request(_ format: PixelFormat, size: PictureSize, type: UInt32) -> v4l2_format {
    var argument = v4l2_format()
    argument.type = type
    let width = UInt32(clamping: size.width)
    let height = UInt32(clamping: size.height)
    if type == V4L2_BUF_TYPE_VIDEO_CAPTURE_MPLANE.rawValue {
      argument.fmt.pix_mp.width = width
      argument.fmt.pix_mp.height = height
      argument.fmt.pix_mp.pixelformat = format.fourCC
      argument.fmt.pix_mp.field = V4L2_FIELD_NONE.rawValue
    } else {
      argument.fmt.pix.width = width
      argument.fmt.pix.height = height
      argument.fmt.pix.pixelformat = format.fourCC
      argument.fmt.pix.field = V4L2_FIELD_NONE.rawValue
      argument.fmt.pix.priv = nightjar_V4L2_PIX_FMT_PRIV_MAGIC
    }
    return argument
  }

  /// Returns the number of memory planes of the pixel format.
  static func planeCount(of format: PixelFormat) -> Int {
    switch format {
    case .nm12, .nm21: 2
    case .ym12, .ym21: 3
    default: 1
    }
  }

  /// The flaw of the format, in words that follow "the driver of /dev/video0"; nil if the format can be used.
  package var flaw: String? {
    if !size.isEncodable { return "changed the size to \(size), which cannot be encoded" }
    let expected = Self.planeCount(of: pixelFormat)
    if planes.count != expected {
      return "gives \(pixelFormat) in \(planes.count) memory planes instead of \(expected)"
    }
    for plane in planes where plane.byteCount <= 0 || plane.byteCount > Self.planeLimit || plane.stride > 1 << 20 {
      return "gives a plane of \(plane.byteCount) bytes with rows of \(plane.stride)"
    }
    return nil
  }
}

extension DriverFormat {
  /// Creates the format from the driver's answer.
  package init(_ answer: v4l2_format) {
    if answer.type == V4L2_BUF_TYPE_VIDEO_CAPTURE_MPLANE.rawValue {
      let picture = answer.fmt.pix_mp
      size = PictureSize(width: Int(picture.width), height: Int(picture.height))
      pixelFormat = PixelFormat(fourCC: picture.pixelformat)
      field = picture.field
      let all = [picture.plane_fmt.0, picture.plane_fmt.1, picture.plane_fmt.2]
      planes = all.prefix(Int(picture.num_planes)).map {
        Plane(stride: Int($0.bytesperline), byteCount: Int($0.sizeimage))
      }
      color = CameraColor(
        colorspace: picture.colorspace, transfer: UInt32(picture.xfer_func), encoding: UInt32(picture.ycbcr_enc),
        quantization: UInt32(picture.quantization))
    } else {
      let picture = answer.fmt.pix
      size = PictureSize(width: Int(picture.width), height: Int(picture.height))
      pixelFormat = PixelFormat(fourCC: picture.pixelformat)
      field = picture.field
      planes = [Plane(stride: Int(picture.bytesperline), byteCount: Int(picture.sizeimage))]
      // Without the magic number the driver does not fill the fields after it.
      color =
        picture.priv == nightjar_V4L2_PIX_FMT_PRIV_MAGIC
        ? CameraColor(
          colorspace: picture.colorspace, transfer: picture.xfer_func, encoding: picture.ycbcr_enc,
          quantization: picture.quantization)
        : CameraColor(colorspace: picture.colorspace)
    }
  }

  /// Returns the contents of a dequeued buffer for the pixel converter; nil if a plane is empty.
  func picture(of buffer: DequeuedBuffer) -> SourcePicture? {
    guard let first = source(0, buffer.contents.0) else { return nil }
    let second = planes.count > 1 ? source(1, buffer.contents.1) : nil
    let third = planes.count > 2 ? source(2, buffer.contents.2) : nil
    guard (second != nil) == (planes.count > 1), (third != nil) == (planes.count > 2) else { return nil }
    return SourcePicture(first: first, second: second, third: third)
  }

  private func source(_ index: Int, _ contents: DequeuedPlane) -> SourcePlane? {
    guard let base = contents.base, contents.byteCount > 0 else { return nil }
    return SourcePlane(base: UnsafePointer(base), stride: planes[index].stride, byteCount: contents.byteCount)
  }
}
