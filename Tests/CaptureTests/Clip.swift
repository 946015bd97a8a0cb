import Foundation
import Media
import TestSupport

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
