import CLinux
import CV4L
import Glibc
import Media
import PixelConversion

/// Opens the formats that only libv4lconvert knows: R'G'B', sensors' mosaics, 4:2:0 in odd orders.
///
/// The library makes 4:2:0 planar pictures (`YU12`) in memory that is set aside once; the pixel converter does the
/// rest, turning included.
final class LegacyConverter {
  private let path: String
  private let library: OpaquePointer
  private let legacy: LegacyFormat
  private let leastBytes: Int
  private let stride: Int
  private let planar: UnsafeMutableRawBufferPointer
  private let planarBytes: Int
  /// The picture on its way over R'G'B'. Empty for most formats.
  private let between: UnsafeMutableRawBufferPointer
  private var source = v4l2_format()
  private var rgb = v4l2_format()
  private var destination = v4l2_format()

  /// A converter of the pictures that `device` delivers in `format`.
  ///
  /// - Throws: ``CaptureError`` or `ConversionError` where the library does not open the format.
  convenience init(device: V4L2Device, format: DriverFormat) throws {
    guard let library = v4lconvert_create(device.descriptor) else {
      throw CaptureError.conversion(path: device.path, "does not open the camera")
    }
    try self.init(library: library, path: device.path, format: format)
  }

  /// The same with the library's own state for a device, which it takes over.
  init(library: OpaquePointer, path: String, format: DriverFormat) throws {
    var isTakenOver = false
    defer { if !isTakenOver { v4lconvert_destroy(library) } }
    let stride = format.planes[0].stride
    guard let legacy = LegacyFormat.of(format.pixelFormat), format.planes.count == 1,
      let leastBytes = legacy.leastBytes(size: format.size, stride: stride)
    else { throw CaptureError.formatNotReadable([format.pixelFormat]) }
    guard leastBytes <= format.planes[0].byteCount else {
      throw CaptureError.implausible(
        path: path, "gives \(format.planes[0].byteCount) bytes for \(format.size) in \(format.pixelFormat)")
    }
    guard format.size.isEncodable else { throw ConversionError.size(format.size) }
    self.path = path
    self.library = library
    self.legacy = legacy
    self.leastBytes = leastBytes
    self.stride = format.size.width
    let pixels = format.size.pixels
    planarBytes = pixels * 3 / 2
    planar = .allocate(byteCount: planarBytes, alignment: 64)
    planar.initializeMemory(as: UInt8.self, repeating: 0)
    between = .allocate(byteCount: legacy.isIndirect ? pixels * 3 : 0, alignment: 64)
    between.initializeMemory(as: UInt8.self, repeating: 0)
    source = Self.argument(
      format.pixelFormat, format.size, stride: stride, byteCount: format.planes[0].byteCount)
    rgb = Self.argument(Self.rgb24, format.size, stride: format.size.width * 3, byteCount: pixels * 3)
    destination = Self.argument(.yu12, format.size, stride: format.size.width, byteCount: planarBytes)
    // From here on `deinit` ends it.
    isTakenOver = true
    try rehearse(format)
  }

  deinit {
    v4lconvert_destroy(library)
    planar.deallocate()
    between.deallocate()
  }

  /// Opens the picture in `plane`, which the library may write to; valid until the next one.
  ///
  /// - Throws: `ConversionError` where the picture is too short or broken.
  func picture(in plane: DequeuedPlane) throws(ConversionError) -> SourcePicture {
    guard let base = plane.base, plane.byteCount >= leastBytes else {
      throw .short(got: plane.byteCount, expected: leastBytes)
    }
    guard unpack(base, plane.byteCount) == 0, let unpacked = planar.baseAddress else {
      throw .corrupt("libv4l: \(message)")
    }
    return SourcePicture(
      first: SourcePlane(
        base: UnsafePointer(unpacked.assumingMemoryBound(to: UInt8.self)), stride: stride, byteCount: planarBytes))
  }

  /// Converts one black picture: so the library allocates now what it needs, and says now what it cannot do.
  private func rehearse(_ format: DriverFormat) throws(CaptureError) {
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
    guard legacy.isIndirect, let middle = between.baseAddress?.assumingMemoryBound(to: UInt8.self) else {
      return convert(base, byteCount, &source, into: planar, &destination)
    }
    let errorNumber = convert(base, byteCount, &source, into: between, &rgb)
    return errorNumber != 0 ? errorNumber : convert(middle, between.count, &rgb, into: planar, &destination)
  }

  private func convert(
    _ base: UnsafeMutablePointer<UInt8>, _ byteCount: Int, _ from: inout v4l2_format,
    into memory: UnsafeMutableRawBufferPointer, _ to: inout v4l2_format
  ) -> CInt {
    let result = v4lconvert_convert(
      library, &from, &to, base, CInt(clamping: byteCount),
      memory.baseAddress?.assumingMemoryBound(to: UInt8.self), CInt(clamping: memory.count))
    return result < 0 ? errno : result < memory.count ? EPIPE : 0
  }

  private static let rgb24 = PixelFormat(fourCC: nightjar_V4L2_PIX_FMT_RGB24)

  private static func argument(
    _ format: PixelFormat, _ size: PictureSize, stride: Int, byteCount: Int
  ) -> v4l2_format {
    var argument = DriverFormat.request(format, size: size, type: V4L2_BUF_TYPE_VIDEO_CAPTURE.rawValue)
    argument.fmt.pix.bytesperline = UInt32(clamping: stride)
    argument.fmt.pix.sizeimage = UInt32(clamping: byteCount)
    return argument
  }

  private var message: String {
    guard let text = v4lconvert_get_error_message(library) else { return "unknown" }
    return DriverText.text(UnsafeRawBufferPointer(start: text, count: strnlen(text, DriverText.limit)))
  }
}
