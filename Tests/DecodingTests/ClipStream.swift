import Foundation
import Media
import Platform
import TestSupport

/// A stream that x264 made by ffmpeg, with the pictures and the packets that ffmpeg itself finds in it.
struct ClipStream {
  /// Annex B.
  let stream: [UInt8]
  /// ffmpeg's pictures in NV12: of every picture luma, then interleaved chroma.
  let pictures: [UInt8]
  private let directory: TemporaryDirectory
  private let path: String

  init(size: PictureSize, frames: Int, _ arguments: [String]) throws {
    directory = try TemporaryDirectory()
    path = directory.path("s.h264")
    let raw = directory.path("s.raw")
    for command in [
      ["-f", "lavfi", "-i", "testsrc2=size=\(size):rate=25", "-frames:v", "\(frames)", "-c:v", "libx264"]
        + (arguments.contains("-pix_fmt") ? [] : ["-pix_fmt", "yuv420p"]) + arguments + [path],
      // As they are: without exact cropping, ffmpeg crops what its alignment allows.
      ["-flags", "unaligned", "-i", path, "-fps_mode", "passthrough", "-f", "rawvideo", raw],
    ] {
      let result = try Subprocess.run(["ffmpeg", "-v", "error", "-nostdin", "-y"] + command, in: directory)
      guard result.status == 0 else { throw Failed(log: result.error) }
    }
    stream = [UInt8](try Data(contentsOf: URL(fileURLWithPath: path)))
    var pictures = [UInt8](try Data(contentsOf: URL(fileURLWithPath: raw)))
    let bytes = pictures.count / max(1, frames)
    let luma = bytes * 2 / 3
    for picture in 0..<frames {
      let chroma = Array(pictures[(picture * bytes + luma)..<(picture + 1) * bytes])
      for index in 0..<chroma.count / 2 {
        pictures[picture * bytes + luma + 2 * index] = chroma[index]
        pictures[picture * bytes + luma + 2 * index + 1] = chroma[chroma.count / 2 + index]
      }
    }
    self.pictures = pictures
  }

  /// The NAL units of each access unit by ffmpeg's parser.
  func packets() throws -> [[[UInt8]]] {
    let result = try Subprocess.run(
      ["ffprobe", "-v", "error", "-show_entries", "packet=pos,size", "-of", "csv=p=0", path], in: directory)
    return result.outputText.split(separator: "\n").compactMap { line in
      let numbers = line.split(separator: ",").compactMap { Int($0) }
      return numbers.count == 2 ? nalUnits(stream[numbers[1]..<numbers[1] + numbers[0]]) : nil
    }
  }

  /// The pictures in NV12 that ffmpeg finds in a byte stream.
  static func pictures(of stream: [UInt8], size: PictureSize) throws -> [[UInt8]] {
    let directory = try TemporaryDirectory()
    let (path, raw) = (directory.path("s.h264"), directory.path("s.raw"))
    try Data(stream).write(to: URL(fileURLWithPath: path))
    let result = try Subprocess.run(
      [
        "ffmpeg", "-v", "quiet", "-nostdin", "-y", "-i", path, "-fps_mode", "passthrough", "-pix_fmt", "nv12", "-f",
        "rawvideo", raw,
      ], in: directory)
    guard result.status == 0 else { throw Failed(log: result.error) }
    let bytes = [UInt8](try Data(contentsOf: URL(fileURLWithPath: raw)))
    let count = size.pixels * 3 / 2
    return stride(from: 0, to: bytes.count, by: count).map { Array(bytes[$0..<$0 + count]) }
  }

  struct Failed: Error, CustomStringConvertible {
    let log: String
    var description: String { log }
  }
}

/// The NAL units of a byte stream.
func nalUnits(_ bytes: some Sequence<UInt8>) -> [[UInt8]] {
  var units: [[UInt8]] = []
  Array(bytes).withUnsafeBytes { AnnexB.forEachNALUnit(in: $0) { units.append(Array($0.bytes)) } }
  return units
}

/// Every tool of x264 that the pictures of a stream depend on, and how a picture is cut into NAL units.
let clipVariants: [[String]] = [
  ["-preset", "ultrafast", "-tune", "zerolatency"],
  ["-preset", "placebo", "-x264-params", "bframes=16:b-pyramid=normal:weightp=2:ref=16"],
  ["-x264-params", "slices=4:keyint=5:aud=1"],
  ["-x264-params", "slice-max-size=300:deblock=3,3:constrained-intra=1"],
  ["-x264-params", "interlaced=1:bframes=2"],
  ["-x264-params", "fake-interlaced=1:bff=1"],
  ["-x264-params", "intra-refresh=1:keyint=10:bframes=0"],
  ["-x264-params", "open-gop=1:keyint=8:bframes=3:b-pyramid=strict:direct=temporal"],
  ["-profile:v", "baseline", "-x264-params", "sliced-threads=1:threads=4"],
  ["-x264-params", "cqm=jvt:trellis=2:8x8dct=1:partitions=all:me=tesa"],
  ["-qp", "0", "-x264-params", "keyint=9"],
  ["-x264-params", "nal-hrd=cbr:vbv-maxrate=500:vbv-bufsize=500:bitrate=500:filler=1:no-cabac=1"],
  ["-x264-params", "crop-rect=16,8,2,4"],
  ["-pix_fmt", "yuvj420p", "-x264-params", "fullrange=on:colormatrix=bt709"],
  ["-pix_fmt", "gray"],
]
