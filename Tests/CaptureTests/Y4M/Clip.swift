import Foundation
import Media
import Platform
import TestSupport
import Testing

/// A folder with one clip in it, which goes when this value does.
final class Clip {
  private let directory: TemporaryDirectory
  var folder: String { directory.url.path }
  let path: String

  /// A clip of `bytes`.
  init(_ bytes: some Sequence<UInt8> = []) throws {
    directory = try TemporaryDirectory()
    path = try directory.write(bytes, as: "clip.y4m")
  }
}

/// ffmpeg's moving test pattern as a y4m clip.
func testClip(_ size: PictureSize, _ pixelFormat: String, frames: Int, rate: String = "30") throws -> [UInt8] {
  try output(
    of: """
      ffmpeg -nostdin -v error -f lavfi -i testsrc2=size=\(size):rate=\(rate) -frames:v \(frames) \
      -pix_fmt \(pixelFormat) -strict -1 -f yuv4mpegpipe -
      """)
}

/// Expects that a live source soon counts a picture as lost because all memory is in use.
func expectExhaustion(of source: some VideoSource, _ interrupt: borrowing Interrupt) throws {
  for _ in 0..<100 {
    switch try source.next(interrupt: interrupt) {
    case .dropped(.poolExhausted, let count):
      #expect(count == 1)
      return
    case .dropped(.driver, _): break
    default:
      Issue.record("neither a drop")
      return
    }
  }
  Issue.record("the memory is never exhausted")
}

/// The picture without padding: luma and chroma.
func packed(_ planes: NV12Planes) -> (luma: [UInt8], chroma: [UInt8]) {
  let size = planes.size
  let luma = (0..<size.height).flatMap {
    Array(UnsafeBufferPointer(start: planes.luma + $0 * planes.lumaStride, count: size.width))
  }
  let chroma = (0..<size.height / 2).flatMap {
    Array(UnsafeBufferPointer(start: planes.chroma + $0 * planes.chromaStride, count: size.width))
  }
  return (luma, chroma)
}
