import CLinux
import CV4L
import Glibc
import Media
import PixelConversion

/// Makes NV12 of the formats that only libv4lconvert opens: webcams' own compressions, sensors' mosaics, R'G'B'.
///
/// The library makes 4:2:0 planar pictures in memory that is set aside once; the pixel converter does the rest.
final class LegacyConverter {
  private let path: String
  private let library: OpaquePointer
  private let legacy: LegacyFormat
  private let leastBytes: Int
  private let converter: PixelConverter
  private let planar: UnsafeMutableRawBufferPointer
  private let planarBytes: Int
  /// A copy of a compressed picture with zeros behind it: some decoders take no length, and stop only once
  /// they have all pixels. Empty for other pictures.
  private let padded: UnsafeMutableRawBufferPointer
  private var source = v4l2_format()
  private var destination = v4l2_format()

  /// More than any of those decoders reads for a pixel.
  private static let paddingForPixel = 4

  /// A converter of the pictures that `device` delivers in `format`.
  ///
  /// - Throws: ``CaptureError`` or `ConversionError` where the library does not open the format.
  init(device: V4L2Device, format: DriverFormat) throws {
    let stride = format.planes[0].stride
    guard let legacy = LegacyFormat.of(format.pixelFormat), format.planes.count == 1,
      let leastBytes = legacy.leastBytes(size: format.size, stride: stride)
    else { throw CaptureError.formatNotReadable([format.pixelFormat]) }
    guard leastBytes <= format.planes[0].byteCount else {
      throw CaptureError.implausible(
        path: device.path, "gives \(format.planes[0].byteCount) bytes for \(format.size) in \(format.pixelFormat)")
    }
    let converter = try PixelConverter(from: .yu12, size: format.size)
    guard let library = v4lconvert_create(device.descriptor) else {
      throw CaptureError.conversion(path: device.path, "does not open the camera")
    }
    path = device.path
    self.library = library
    self.legacy = legacy
    self.leastBytes = leastBytes
    self.converter = converter
    let pixels = format.size.pixels
    planarBytes = pixels * 3 / 2
    // Twice as much as 4:2:0 needs: the library unpacks HSV to R'G'B' in its destination.
    planar = .allocate(byteCount: pixels * 3, alignment: 64)
    planar.initializeMemory(as: UInt8.self, repeating: 0)
    padded = .allocate(
      byteCount: legacy.isCompressed ? format.planes[0].byteCount + pixels * Self.paddingForPixel : 0, alignment: 64)
    padded.initializeMemory(as: UInt8.self, repeating: 0)
    source = DriverFormat.request(
      format.pixelFormat, size: format.size, type: V4L2_BUF_TYPE_VIDEO_CAPTURE.rawValue)
    source.fmt.pix.bytesperline = UInt32(clamping: stride)
    source.fmt.pix.sizeimage = UInt32(clamping: format.planes[0].byteCount)
    destination = DriverFormat.request(
      .yu12, size: format.size, type: V4L2_BUF_TYPE_VIDEO_CAPTURE.rawValue)
    destination.fmt.pix.bytesperline = UInt32(clamping: format.size.width)
    destination.fmt.pix.sizeimage = UInt32(clamping: planarBytes)
    try rehearse(format)
  }

  deinit {
    v4lconvert_destroy(library)
    planar.deallocate()
    padded.deallocate()
  }

  /// Converts the picture in `bytes`, which the library may write to.
  ///
  /// - Throws: `ConversionError` where the picture is too short or broken.
  func convert(_ plane: DequeuedPlane, into planes: NV12Planes) throws(ConversionError) {
    guard var base = plane.base, plane.byteCount >= leastBytes else {
      throw .short(got: plane.byteCount, expected: leastBytes)
    }
    if legacy.isCompressed, let copy = padded.baseAddress {
      let room = padded.count - planes.size.pixels * Self.paddingForPixel
      let used = min(plane.byteCount, room)
      memcpy(copy, base, used)
      memset(copy + used, 0, padded.count - used)
      base = copy.assumingMemoryBound(to: UInt8.self)
    }
    guard unpack(base, plane.byteCount) == 0, let unpacked = planar.baseAddress else {
      throw .corrupt("libv4l: \(message)")
    }
    let picture = SourcePicture(
      first: SourcePlane(
        base: UnsafePointer(unpacked.assumingMemoryBound(to: UInt8.self)), stride: planes.size.width,
        byteCount: planarBytes),
      second: nil, third: nil)
    try converter.convert(picture, into: planes)
  }

  /// Converts one black picture: so the library allocates now what it needs, and says now what it cannot do.
  private func rehearse(_ format: DriverFormat) throws(CaptureError) {
    guard !legacy.isCompressed else { return }
    let picture = UnsafeMutableRawBufferPointer.allocate(byteCount: format.planes[0].byteCount, alignment: 64)
    defer { picture.deallocate() }
    picture.initializeMemory(as: UInt8.self, repeating: 0)
    guard let base = picture.baseAddress else { return }
    if unpack(base.assumingMemoryBound(to: UInt8.self), picture.count) == EINVAL {
      throw .conversion(path: path, message)
    }
  }

  /// 0, or an `errno`.
  private func unpack(_ base: UnsafeMutablePointer<UInt8>, _ byteCount: Int) -> CInt {
    let result = v4lconvert_convert(
      library, &source, &destination, base, CInt(clamping: byteCount),
      planar.baseAddress?.assumingMemoryBound(to: UInt8.self), CInt(clamping: planar.count))
    return result < 0 ? errno : result < planarBytes ? EPIPE : 0
  }

  private var message: String {
    guard let text = v4lconvert_get_error_message(library) else { return "unknown" }
    return DriverText.text(UnsafeRawBufferPointer(start: text, count: strnlen(text, DriverText.limit)))
  }
}
