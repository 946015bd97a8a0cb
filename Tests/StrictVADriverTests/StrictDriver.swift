import Foundation
import TestSupport
import Testing

/// The driver that `make -C Tests/StrictVADriver OUT=.build/strict-va` built, and a log and a node for one run of it.
struct StrictDriver {
  /// A tool or build product that the tests cannot do without.
  struct Missing: Error, CustomStringConvertible {
    let description: String
  }

  let directory: TemporaryDirectory

  init() throws {
    try #require(StrictVADriver.isBuilt)
    directory = try TemporaryDirectory()
    try Data().write(to: directory.url.appendingPathComponent("node"))
  }

  /// The node that passes for a render node.
  var node: String { directory.path("node") }

  /// The environment in which a program finds the driver, with the knobs given without their prefix. Miscellaneous parameters
  /// may come first, as ffmpeg and GStreamer send them.
  func environment(_ knobs: [String: String]) -> [String: String] {
    StrictVADriver.environment(
      node: node, log: directory.path("log"), knobs: ["MISC_FIRST": "1"].merging(knobs) { $1 })
  }

  /// Runs a program on the driver, with a fresh log.
  func run(
    _ arguments: [String], knobs: [String: String] = [:], environment more: [String: String] = [:]
  ) throws -> Subprocess.Result {
    try? FileManager.default.removeItem(atPath: directory.path("log"))
    return try Subprocess.run(arguments, in: directory, environment: environment(knobs).merging(more) { $1 })
  }

  /// The lines of the last run's log.
  var log: [String] {
    let text = (try? String(contentsOfFile: directory.path("log"), encoding: .utf8)) ?? ""
    return text.split(separator: "\n").map(String.init)
  }

  /// The violations of the last run.
  var violations: [String] { StrictVADriver.violations(in: directory.path("log")) }

  /// A number that the contexts' summaries give, added up.
  func summed(_ key: String) -> Int {
    log.filter { $0.hasPrefix("summary: ") }.reduce(0) { sum, line in
      let words = line.split(separator: " ")
      guard let at = words.firstIndex(of: Substring(key)), at + 1 < words.count else { return sum }
      return sum + (Int(words[at + 1]) ?? 0)
    }
  }
}

/// Raw NV12 pictures, made and compared by ffmpeg.
struct Pictures {
  let width: Int
  let height: Int
  /// The codec of the stream: `h264` or `hevc`, as ffmpeg calls it.
  var codec = "h264"
  var size: String { "\(width)x\(height)" }
  var frameBytes: Int { width * height * 3 / 2 }

  var input: [String] { ["-f", "rawvideo", "-pix_fmt", "nv12", "-s", size, "-r", "30"] }

  /// Writes `count` pictures of ffmpeg's moving test picture.
  func make(_ count: Int, at path: String, in directory: TemporaryDirectory) throws {
    let result = try Subprocess.run(
      [
        "ffmpeg", "-v", "error", "-y", "-f", "lavfi", "-i", "testsrc2=size=\(size):rate=30", "-frames:v", "\(count)",
        "-pix_fmt", "nv12", "-f", "rawvideo", path,
      ], in: directory)
    guard result.status == 0 else { throw StrictDriver.Missing(description: "ffmpeg: \(result.error)") }
  }

  /// Decodes a stream: the pictures in it, and what the decoder complained about.
  func decode(_ stream: String, to path: String, in directory: TemporaryDirectory) throws -> (count: Int, error: String)
  {
    let result = try Subprocess.run(
      [
        "ffmpeg", "-v", "warning", "-err_detect", "explode", "-y", "-f", codec, "-i", stream, "-fps_mode",
        "passthrough",
        "-pix_fmt", "nv12", "-f", "rawvideo", path,
      ], in: directory)
    let bytes = (try? FileManager.default.attributesOfItem(atPath: path)[.size] as? Int) ?? 0
    let whole = bytes % frameBytes == 0
    return (whole ? bytes / frameBytes : -1, result.error)
  }

  /// The lowest PSNR of any picture, over all planes, in dB.
  func worstPSNR(_ one: String, _ other: String, in directory: TemporaryDirectory) throws -> Double {
    let result = try Subprocess.run(
      ["ffmpeg", "-v", "info"] + input + ["-i", one] + input + ["-i", other, "-lavfi", "psnr", "-f", "null", "-"],
      in: directory)
    return try PictureQuality(log: result.error).lowest
  }

  /// Decodes what the driver wrote to `out` with the codec's suffix in its directory, and compares it with the `count` pictures in `in`:
  /// no violation, no complaint, none missing, and none below `minimum` dB.
  func check(_ count: Int, from driver: StrictDriver, minimum: Double) throws {
    let directory = driver.directory
    #expect(driver.violations.isEmpty)
    #expect(driver.summed("pictures") == count)
    let decoded = try decode(directory.path("out.\(codec)"), to: directory.path("out"), in: directory)
    #expect(decoded.count == count)
    #expect(decoded.error.isEmpty)
    #expect(try worstPSNR(directory.path("in"), directory.path("out"), in: directory) > minimum)
  }
}
