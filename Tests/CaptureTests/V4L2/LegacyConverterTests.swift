import CLinux
import CV4L
import Capture
import Glibc
import Media
import PixelConversion
import Platform
import Testing

/// libv4lconvert with pictures from here instead of a camera.
@Suite struct LegacyConverterTests {
  private static let size = PictureSize(width: 64, height: 32)

  /// A converter of `code` for a device that is called by one function here instead of the kernel.
  private func converter(_ code: String, stride: Int, byteCount: Int) throws -> LegacyConverter {
    let pixelFormat = try #require(PixelFormat(code))
    let library = try #require(v4lconvert_create_with_dev_ops(-1, nil, Self.operations))
    return try LegacyConverter(
      library: library, path: "/dev/video0",
      format: DriverFormat(
        size: Self.size, pixelFormat: pixelFormat, field: 1, planes: [.init(stride: stride, byteCount: byteCount)],
        color: CameraColor()))
  }

  private typealias Call =
    @convention(c) (
      UnsafeMutableRawPointer?, CInt, CUnsignedLong, UnsafeMutableRawPointer?
    ) -> CInt

  /// A `struct libv4l_dev_ops` (libv4l-plugin.h), whose third function is `ioctl`: the device says that it is there,
  /// and refuses everything else. It is used as long as the process lives.
  nonisolated(unsafe) private static let operations: OpaquePointer = {
    let functions = UnsafeMutableRawPointer.allocate(byteCount: 32 * 8, alignment: 8)
    functions.initializeMemory(as: UInt.self, repeating: 0, count: 32)
    let call: Call = { _, _, request, _ in
      if request == nightjar_VIDIOC_QUERYCAP { return 0 }
      errno = ENOTTY
      return -1
    }
    functions.storeBytes(of: call, toByteOffset: 16, as: Call.self)
    return OpaquePointer(functions)
  }()

  /// Converts `bytes` and looks at the first sample of each plane.
  private func firstSamples(_ converter: LegacyConverter, _ bytes: [UInt8]) throws -> [UInt8] {
    let pool = try FramePool(size: Self.size, capacity: 1)
    guard let frame = pool.checkout(color: .unspecified, timestamp: .zero, captured: .zero) else {
      throw FramePoolError.capacity(0)
    }
    // At the very end of a mapping, with nothing readable behind it: reading too much is a crash.
    let page = 4096
    let mapped = (bytes.count + page - 1) / page * page
    let base = try #require(
      mmap(nil, mapped + page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0))
    try #require(base != MAP_FAILED)
    defer { munmap(base, mapped + page) }
    try #require(mprotect(base + mapped, page, PROT_NONE) == 0)
    let start = (base + mapped - bytes.count).assumingMemoryBound(to: UInt8.self)
    for (index, byte) in bytes.enumerated() { start[index] = byte }
    let picture = try converter.picture(in: DequeuedPlane(base: start, byteCount: bytes.count))
    try PixelConverter(from: .yu12, size: Self.size).convert(picture, into: frame.planes)
    return [frame.planes.luma[0], frame.planes.chroma[0], frame.planes.chroma[1]]
  }

  private func isNear(_ samples: [UInt8], to expected: [Int]) -> Bool {
    zip(samples, expected).allSatisfy { abs(Int($0) - $1) <= 3 }
  }

  /// Pure red by ITU-R BT.601, limited range, is 81 90 240.
  @Test(arguments: [
    ("RGB3", [UInt8]([255, 0, 0])), ("BGR3", [0, 0, 255]), ("RGB4", [0, 255, 0, 0]), ("BGR4", [0, 0, 255, 0]),
    ("XR24", [0, 0, 255, 0]), ("BX24", [0, 255, 0, 0]), ("RGBP", [0x00, 0xf8]),
  ])
  func redBecomesTheRedOfBT601(_ code: String, _ pixel: [UInt8]) throws {
    let stride = Self.size.width * pixel.count
    let converter = try converter(code, stride: stride, byteCount: stride * Self.size.height)
    let picture = (0..<Self.size.pixels * pixel.count).map { pixel[$0 % pixel.count] }
    let samples = try firstSamples(converter, picture)
    // Of RGB565 red has only 248 of 255.
    #expect(isNear(samples, to: code == "RGBP" ? [79, 91, 237] : [81, 90, 240]), "\(samples)")
  }

  @Test func samplesOfYCbCrPassUnchanged() throws {
    let luma = [UInt8](repeating: 100, count: Self.size.pixels)
    let chroma = (0..<Self.size.pixels).map { $0.isMultiple(of: 2) ? UInt8(60) : 200 }
    let converter = try converter("NV16", stride: 64, byteCount: Self.size.pixels * 2)
    #expect(try firstSamples(converter, luma + chroma) == [100, 60, 200])
  }

  @Test func aBufferOneByteShortIsNotGivenToTheLibrary() throws {
    let converter = try converter("RGB3", stride: 192, byteCount: 192 * 32)
    #expect(throws: ConversionError.short(got: 192 * 32 - 1, expected: 192 * 32)) {
      try firstSamples(converter, [UInt8](repeating: 0, count: 192 * 32 - 1))
    }
    #expect(throws: ConversionError.self) {
      try firstSamples(converter, [])
    }
  }

  @Test func aDriverThatGivesTooLittleRoomIsRefused() {
    #expect(throws: CaptureError.self) { try converter("RGB3", stride: 192, byteCount: 192 * 31) }
    #expect(throws: CaptureError.self) { try converter("RGB3", stride: 190, byteCount: 192 * 32) }
    #expect(throws: CaptureError.self) { try converter("NV16", stride: 96, byteCount: 1 << 20) }
  }

  @Test(arguments: [
    ("S501", 12), ("S505", 12), ("S508", 12), ("CITV", 12), ("KONI", 12), ("S920", 12), ("M420", 12), ("NV16", 16),
    ("NV61", 16), ("S680", 8), ("pBAA", 10), ("pGAA", 10), ("pgAA", 10), ("pRAA", 10), ("BG10", 16), ("BYR2", 16),
    ("BA81", 8), ("GBRG", 8), ("Y04", 8), ("Y06", 8), ("Y10B", 10), ("Y16", 16), ("RGBP", 16), ("RGB3", 24),
    ("BGR4", 32), ("RGB4", 32), ("YVYU", 16),
  ])
  func noDecoderReadsBeyondThePicture(_ code: String, _ bits: Int) throws {
    let bytes = Self.size.pixels * bits / 8
    let planar = bits == 12 || code.hasPrefix("NV")
    let converter = try converter(code, stride: planar ? 64 : 64 * bits / 8, byteCount: bytes)
    for value: UInt8 in [0, 0x55, 0xff] {
      _ = try firstSamples(converter, [UInt8](repeating: value, count: bytes))
    }
  }
}
