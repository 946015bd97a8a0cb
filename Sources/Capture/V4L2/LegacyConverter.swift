import CLinux
import CV4L
import Glibc
import Media
package import PixelConversion

/// Converts the formats that only libv4lconvert opens: R'G'B', sensors' mosaics, 4:2:0 in unusual orders.
///
/// The library converts them to planar 4:2:0 pictures (`YU12`) in memory allocated once. The pixel converter does the
/// rest, including rotation.
package final class LegacyConverter {
  private let path: String
  private let library: OpaquePointer
  private let legacy: LegacyFormat
  private let leastBytes: Int
  private let stride: Int
  private let planar: UnsafeMutableRawBufferPointer
  private let planarBytes: Int
  /// The memory for a picture converted through R'G'B'. Empty for most formats.
  private let between: UnsafeMutableRawBufferPointer
  private var source = v4l2_format()
  private var rgb = v4l2_format()
  private var destination = v4l2_format()

  /// Creates a converter for the pictures that `device` delivers in `format`.
  ///
  /// - Throws: ``CaptureError`` or `ConversionError` if the library does not open the format.
  convenience init(device: V4L2Device, format: DriverFormat) throws {
    guard let library = v4lconvert_create(device.descriptor) else {
      throw CaptureError.conversion(path: device.path, "does not open the camera")
    }
    try self.init(library: library, path: device.path, format: format)
  }

  /// Creates a converter with the library's state for a device, and takes ownership of that state.
  package init(library: OpaquePointer, path: String, format: DriverFormat) throws {
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
    // From here on `deinit` destroys the library's state.
    isTakenOver = true
    try rehearse(format)
  }

  deinit {
    v4lconvert_destroy(library)
    planar.deallocate()
    between.deallocate()
  }

  /// Converts the picture in `plane`, which the library may write to. The result is valid until the next call.
  ///
  /// - Throws: `ConversionError` if the picture is too short or broken.
  package func picture(in plane: DequeuedPlane) throws(ConversionError) -> SourcePicture {
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

  /// Converts one black picture, so that the library allocates its memory and reports its limits now.
  private func rehearse(_ format: DriverFormat) throws(CaptureError) {
    let picture = UnsafeMutableRawBufferPointer.allocate(byteCount: format.planes[0].byteCount, alignment: 64)
    defer { picture.deallocate() }
    picture.initializeMemory(as: UInt8.self, repeating: 0)
    guard let base = picture.baseAddress else { return }
    if unpack(base.assumingMemoryBound(to: UInt8.self), picture.count) == EINVAL {
      throw .conversion(path: path, message)
    }
  }

  /// Converts the picture at `base`. Returns 0, or an `errno`.
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
