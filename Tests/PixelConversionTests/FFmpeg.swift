import Glibc
import Media
import PixelConversion
import Platform
import TestSupport
import Testing

/// One raw picture of ffmpeg's moving test pattern.
func testPicture(_ size: PictureSize, _ pixelFormat: String) throws -> [UInt8] {
  try output(
    of: """
      ffmpeg -nostdin -v error -f lavfi -i testsrc2=size=\(size) -frames:v 1 -pix_fmt \(pixelFormat) -f rawvideo -
      """)
}

/// `picture` as ffmpeg converts it to another pixel format, without touching the range of the samples.
func ffmpegConverts(
  _ picture: [UInt8], _ size: PictureSize, from source: String, to target: String = "nv12"
) throws -> [UInt8] {
  let folder = try TemporaryDirectory()
  let file = try folder.write(picture, as: "picture")
  return try output(
    of: """
      ffmpeg -nostdin -v error -f rawvideo -pix_fmt \(source) -s \(size) -i \(file) -sws_flags area \
      -pix_fmt \(target) -f rawvideo -
      """)
}

/// An NV12 picture without padding.
struct PackedPicture: Equatable {
  let luma: [UInt8]
  let chroma: [UInt8]

  /// Creates a picture of the bytes that ffmpeg writes as `-f rawvideo -pix_fmt nv12`.
  init(raw: [UInt8], size: PictureSize) throws {
    try #require(raw.count == size.pixels * 3 / 2)
    luma = Array(raw[..<size.pixels])
    chroma = Array(raw[size.pixels...])
  }

  init(_ planes: NV12Planes) {
    let size = planes.size
    luma = (0..<size.height).flatMap { row in
      Array(UnsafeBufferPointer(start: planes.luma + row * planes.lumaStride, count: size.width))
    }
    chroma = (0..<size.height / 2).flatMap { row in
      Array(UnsafeBufferPointer(start: planes.chroma + row * planes.chromaStride, count: size.width))
    }
  }
}

/// Memory that ends exactly where a page ends that cannot be read: one byte too far is a crash.
final class GuardedBytes {
  let start: UnsafePointer<UInt8>
  let count: Int
  private let mapping: UnsafeMutableRawPointer
  private let length: Int

  init(_ bytes: [UInt8]) throws {
    let page = 4096
    let pages = (bytes.count + page - 1) / page + 1
    length = pages * page
    let mapped = mmap(nil, length, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0)
    mapping = try #require(mapped)
    let last = (pages - 1) * page
    memcpy(mapping + last - bytes.count, bytes, bytes.count)
    mprotect(mapping + last, page, PROT_NONE)
    start = UnsafePointer((mapping + last - bytes.count).assumingMemoryBound(to: UInt8.self))
    count = bytes.count
  }

  deinit {
    munmap(mapping, length)
  }

  func plane(stride: Int) -> SourcePlane {
    SourcePlane(base: start, stride: stride, byteCount: count)
  }
}

/// Converts a picture in one buffer.
func convert(
  _ bytes: [UInt8], _ size: PictureSize, from format: PixelFormat, stride: Int
) throws -> PackedPicture {
  let memory = try GuardedBytes(bytes)
  return try withExtendedLifetime(memory) {
    let converter = try PixelConverter(from: format, size: size)
    return try convert(SourcePicture(first: memory.plane(stride: stride)), size, with: converter)
  }
}

/// Converts a picture of any number of planes, into a frame that held something else before.
func convert(_ picture: SourcePicture, _ size: PictureSize, with converter: PixelConverter) throws -> PackedPicture {
  let pool = try FramePool(size: size, capacity: 1)
  let frame = try pool.anyFrame()
  memset(frame.planes.luma, 0xa5, frame.planes.lumaStride * size.height)
  memset(frame.planes.chroma, 0xa5, frame.planes.chromaStride * size.height / 2)
  try converter.convert(picture, into: frame.planes)
  return PackedPicture(frame.planes)
}

extension FramePool {
  /// A frame of the pool; there must be one. (`#require` takes no noncopyable value.)
  func anyFrame() throws -> Frame {
    guard let frame = checkout(color: .bt709, timestamp: .zero, captured: .zero) else {
      throw SystemFailure("the pool is empty", errorNumber: ENOMEM)
    }
    return frame
  }
}

/// Sizes from the common to the awkward: the last ones are not whole macroblocks, JPEG blocks or cache lines.
let sizes = [
  PictureSize(width: 1280, height: 720), PictureSize(width: 640, height: 480), PictureSize(width: 642, height: 362),
  PictureSize(width: 330, height: 246), PictureSize(width: 16, height: 16), PictureSize(width: 18, height: 22),
]
