import Foundation
import Media
import TestSupport

/// H.264 as a camera would deliver it: a buffer for each picture, coded by ffmpeg.
struct CameraClip {
  static let size = PictureSize(width: 320, height: 240)

  /// The buffers, with start codes.
  let pictures: [[UInt8]]
  /// The whole stream.
  let path: String
  let directory: TemporaryDirectory

  /// A clip of `count` pictures with a key frame every ten.
  init(_ options: [String] = [], count: Int = 30, source: String = "testsrc2=s=320x240:r=30") throws {
    directory = try TemporaryDirectory()
    path = directory.path("clip.h264")
    let result = try Subprocess.run(
      [
        "ffmpeg", "-nostdin", "-v", "error", "-f", "lavfi", "-i", source, "-frames:v", "\(count)", "-c:v", "libx264",
        "-preset", "veryfast", "-tune", "zerolatency", "-g", "10", "-threads", "1", "-pix_fmt", "yuv420p",
      ] + options + ["-bsf:v", "h264_metadata=aud=insert", "-f", "h264", "-y", path], in: directory)
    guard result.status == 0 else { throw Failed(log: result.error) }
    var pictures: [[UInt8]] = []
    try Data(contentsOf: URL(fileURLWithPath: path)).withUnsafeBytes { stream in
      AnnexB.forEachNALUnit(in: stream) { unit in
        if unit.type == .accessUnitDelimiter { pictures.append([]) }
        pictures[pictures.count - 1] += AnnexB.startCode + unit.bytes
      }
    }
    self.pictures = pictures
  }

  /// The NAL units of picture `index`.
  func nalUnits(_ index: Int) -> [[UInt8]] {
    var units: [[UInt8]] = []
    pictures[index].withUnsafeBytes { AnnexB.forEachNALUnit(in: $0) { units.append(Array($0.bytes)) } }
    return units
  }

  /// A buffer of NAL units.
  static func buffer(_ units: [[UInt8]]) -> [UInt8] { units.flatMap { AnnexB.startCode + $0 } }

  struct Failed: Error {
    let log: String
  }
}
