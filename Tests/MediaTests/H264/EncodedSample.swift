import Foundation
import Media
import TestSupport

/// An H.264 stream that ffmpeg made, and the same in MP4 as ffmpeg put it there.
struct EncodedSample {
  /// Annex B.
  let stream: Data
  /// The MP4's samples, one after the other.
  let samples: Data
  /// The MP4's `avcC` box without its header.
  let record: [UInt8]
  /// The stream's file.
  let path: String
  let directory: TemporaryDirectory

  init(size: String = "320x180", rate: String = "25", frames: Int = 12, _ arguments: [String]) throws {
    directory = try TemporaryDirectory()
    path = directory.path("s.h264")
    let mp4 = directory.path("s.mp4")
    for command in [
      ["-f", "lavfi", "-i", "testsrc2=size=\(size):rate=\(rate)", "-frames:v", "\(frames)", "-c:v", "libx264"]
        + arguments + [path],
      ["-framerate", rate, "-i", path, "-c", "copy", mp4],
      ["-i", mp4, "-map", "0:v", "-c", "copy", "-f", "data", directory.path("s.avcc")],
    ] {
      let result = try Subprocess.run(["ffmpeg", "-v", "error", "-nostdin", "-y"] + command, in: directory)
      guard result.status == 0 else { throw Failed(log: result.error) }
    }
    stream = try Data(contentsOf: URL(fileURLWithPath: path))
    samples = try Data(contentsOf: directory.url.appendingPathComponent("s.avcc"))
    let file = [UInt8](try Data(contentsOf: URL(fileURLWithPath: mp4)))
    let name = Array("avcC".utf8)
    guard let at = file.indices.dropLast(4).first(where: { file[$0..<$0 + 4].elementsEqual(name) }) else {
      throw Failed(log: "no avcC")
    }
    let size = file[at - 4..<at].reduce(0) { $0 << 8 | Int($1) }
    record = Array(file[at + 4..<at - 4 + size])
  }

  /// The stream's NAL units.
  var nalUnits: [[UInt8]] {
    var units: [[UInt8]] = []
    stream.withUnsafeBytes { AnnexB.forEachNALUnit(in: $0) { units.append(Array($0.bytes)) } }
    return units
  }

  /// The first NAL unit of `type`.
  func first(_ type: UInt8) -> [UInt8] { nalUnits.first { $0[0] & 0x1f == type } ?? [] }

  /// Returns the headers as ffmpeg's own parser reads them: each name's first value.
  func headers() throws -> [String: Int] {
    let trace = try Subprocess.run(
      ["ffmpeg", "-v", "verbose", "-i", path, "-c", "copy", "-bsf:v", "trace_headers", "-f", "null", "-"],
      in: directory)
    var values: [String: Int] = [:]
    for line in trace.error.split(separator: "\n") {
      let words = line.split(separator: " ")
      guard let name = words.first(where: { $0.contains("_") && $0.first?.isLetter == true }), words.count > 3,
        let value = words.last.flatMap({ Int($0) }), words.dropLast().last == "="
      else { continue }
      if values[String(name)] == nil { values[String(name)] = value }
    }
    return values
  }

  struct Failed: Error, CustomStringConvertible {
    let log: String
    var description: String { log }
  }
}
