import Foundation
package import Media

/// A stream of HEVC that x265 made by ffmpeg.
package struct HEVCClip: CustomStringConvertible {
  /// Annex B.
  package let stream: [UInt8]
  /// The stream's file.
  package let path: String
  /// The folder of the files.
  package let directory: TemporaryDirectory

  /// The size and the place, and not the bytes, in the reports of tests.
  package var description: String { "\(stream.count) bytes in \(path)" }

  /// Encodes a test picture. `parameters` are x265's, with colons between them.
  package init(
    size: String = "336x188", rate: String = "25", frames: Int = 24, _ parameters: String = "",
    arguments: [String] = ["-pix_fmt", "yuv420p"]
  ) throws {
    directory = try TemporaryDirectory()
    path = directory.path("s.hevc")
    let own = "log-level=none:pools=1:frame-threads=1" + (parameters.isEmpty ? "" : ":" + parameters)
    try Self.run(
      ["-f", "lavfi", "-i", "testsrc2=size=\(size):rate=\(rate)", "-frames:v", "\(frames)", "-c:v", "libx265"]
        + ["-preset", "ultrafast", "-x265-params", own] + arguments + [path], in: directory)
    stream = [UInt8](try Data(contentsOf: URL(fileURLWithPath: path)))
  }

  private static func run(_ arguments: [String], in directory: TemporaryDirectory) throws {
    let result = try Subprocess.run(["ffmpeg", "-v", "error", "-nostdin", "-y"] + arguments, in: directory)
    guard result.status == 0 else { throw Failed(log: result.error) }
  }

  /// The stream's NAL units.
  package var nalUnits: [[UInt8]] { Self.nalUnits(stream) }

  /// Returns the NAL units of a byte stream.
  package static func nalUnits(_ bytes: [UInt8]) -> [[UInt8]] {
    var units: [[UInt8]] = []
    bytes.withUnsafeBytes { AnnexB.forEachNALUnit(in: $0) { units.append(Array($0.bytes)) } }
    return units
  }

  /// The type of a NAL unit.
  package static func type(_ unit: [UInt8]) -> UInt8 { unit[0] >> 1 & 0x3f }

  /// The stream's first VPS, SPS and PPS.
  package var parameterSets: ParameterSets? {
    func first(_ type: UInt8) -> [UInt8] { nalUnits.first { Self.type($0) == type } ?? [] }
    return ParameterSets(video: first(32), sequence: first(33), picture: first(34))
  }

  /// The NAL units of each access unit by ffmpeg's parser.
  package func packets() throws -> [[[UInt8]]] {
    let result = try Subprocess.run(
      ["ffprobe", "-v", "error", "-show_entries", "packet=pos,size", "-of", "csv=p=0", path], in: directory)
    return result.outputText.split(separator: "\n").compactMap { line in
      let numbers = line.split(separator: ",").compactMap { Int($0) }
      return numbers.count == 2 ? Self.nalUnits(Array(stream[numbers[1]..<numbers[1] + numbers[0]])) : nil
    }
  }

  /// The checksums of the pictures that ffmpeg decodes of a byte stream, in the order in which they are shown.
  package static func checksums(of stream: [UInt8]) throws -> [String] {
    let directory = try TemporaryDirectory()
    let path = directory.path("s.hevc")
    try Data(stream).write(to: URL(fileURLWithPath: path))
    let result = try Subprocess.run(
      [
        "ffmpeg", "-v", "error", "-nostdin", "-flags", "unaligned", "-f", "hevc", "-i", path, "-fps_mode",
        "passthrough", "-pix_fmt", "nv12", "-f", "framemd5", "-",
      ], in: directory)
    guard result.status == 0, result.error.isEmpty else { throw Failed(log: result.error) }
    return checksums(result.outputText)
  }

  /// The checksums in the text of ffmpeg's `framemd5`.
  package static func checksums(_ text: String) -> [String] {
    text.split(separator: "\n").filter { !$0.hasPrefix("#") }.compactMap { line in
      line.split(separator: ",").last.map { $0.trimmingCharacters(in: .whitespaces) }
    }
  }

  /// Returns the headers of a stream as ffmpeg's own parser reads them: each name's first value.
  package static func headers(of path: String, in directory: TemporaryDirectory) throws -> [String: Int] {
    let trace = try Subprocess.run(
      [
        "ffmpeg", "-v", "verbose", "-nostdin", "-f", "hevc", "-i", path, "-c", "copy", "-bsf:v", "trace_headers", "-f",
        "null", "-",
      ], in: directory)
    var values: [String: Int] = [:]
    for line in trace.error.split(separator: "\n") {
      let words = line.split(separator: " ")
      guard words.count > 3, let value = words.last.flatMap({ Int($0) }), words.dropLast().last == "=",
        let name = words.first(where: { $0.contains("_") && $0.first?.isLetter == true })
      else { continue }
      if values[String(name)] == nil { values[String(name)] = value }
    }
    return values
  }

  package struct Failed: Error, CustomStringConvertible {
    let log: String
    package var description: String { log }
  }
}
