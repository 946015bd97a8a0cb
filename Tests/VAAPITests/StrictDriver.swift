import Foundation
import TestSupport
import Testing

/// The strict test driver of Tests/StrictVADriver, and VAEncodeTool running on it.
struct StrictDriver {
  let directory: TemporaryDirectory
  /// `h264` or `hevc`.
  let codec: String

  init(codec: String = "h264") throws {
    self.codec = codec
    directory = try TemporaryDirectory()
    try Data().write(to: URL(fileURLWithPath: node))
  }

  /// The file that passes for a render node.
  var node: String { directory.path("node") }
  /// The stream that the tool writes.
  var stream: String { directory.path("stream.\(codec)") }
  /// The pictures that it encoded.
  var source: String { directory.path("source.nv12") }

  /// The program, built beside the test bundle.
  static let tool = builtPath("VAEncodeTool")

  /// The results of a run of the tool.
  struct Run {
    let status: Int32
    /// The printed values, by key.
    let values: [String: String]
    /// Every line of it.
    let lines: [String]
    let error: String
    /// The lines of the driver's log that complain.
    let violations: [String]
    /// The lines of the driver's log that sum up its contexts.
    let summaries: [String]

    /// The number that the contexts' summaries give for `key`, added up.
    func summed(_ key: String) -> Int {
      summaries.reduce(0) { sum, line in
        let words = line.split(separator: " ")
        guard let at = words.firstIndex(of: Substring(key)), at + 1 < words.count else { return sum }
        return sum + (Int(words[at + 1]) ?? 0)
      }
    }

    func number(_ key: String) -> Int? { values[key].flatMap { Int($0) } }
    var failures: [String] { lines.filter { $0.hasPrefix("failed=") } }

    /// The parts of the encoder's name: library and driver, entry point, rate control, slices.
    var nameParts: [String] { values["name"]?.components(separatedBy: ", ") ?? [] }
  }

  /// Runs the tool with `arguments` on a driver with `knobs` (without their `NIGHTJAR_VA_`).
  func encode(
    _ arguments: [String], knobs: [String: String] = [:], node: String? = nil, preload: [String] = [],
    environment: [String: String] = [:]
  ) throws -> Run {
    try #require(StrictVADriver.isBuilt)
    let log = directory.path("violations-\(UUID().uuidString)")
    let variables = StrictVADriver.environment(node: self.node, log: log, knobs: knobs, preload: preload)
      .merging(environment) { $1 }
    let result = try Subprocess.run(
      [Self.tool, "--node", node ?? self.node, "--output", stream, "--source", source, "--codec", codec] + arguments,
      in: directory, environment: variables)
    let lines = result.outputText.split(separator: "\n").map(String.init)
    var values: [String: String] = [:]
    for line in lines {
      guard let equals = line.firstIndex(of: "=") else { continue }
      values[String(line[..<equals])] = String(line[line.index(after: equals)...])
    }
    return Run(
      status: result.status, values: values, lines: lines, error: result.error,
      violations: StrictVADriver.violations(in: log), summaries: StrictVADriver.summaries(in: log))
  }

  /// Returns ffmpeg's complaints when it decodes the stream; empty where all is well.
  func decodingErrors() throws -> String {
    let result = try Subprocess.run(
      ["ffmpeg", "-nostdin", "-v", "error", "-xerror", "-i", stream, "-f", "null", "-"], in: directory)
    return result.status == 0 ? result.error : "status \(result.status): \(result.error)"
  }

  /// Entries of ffprobe's for the stream, with the frames that it counts as `nb_read_frames`.
  func probe() throws -> [String: String] { try StreamProbe(path: stream, in: directory).values }

  /// The mean and the lowest PSNR of the stream against its source, dB, by ffmpeg.
  func quality(_ size: String) throws -> PictureQuality {
    let result = try Subprocess.run(
      [
        "ffmpeg", "-nostdin", "-hide_banner", "-nostats", "-r", "30", "-i", stream, "-f", "rawvideo", "-pix_fmt",
        "nv12", "-s", size, "-r", "30", "-i", source, "-lavfi", "psnr", "-f", "null", "-",
      ], in: directory)
    return try PictureQuality(log: result.error)
  }
}
