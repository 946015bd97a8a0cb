import Foundation
import TestSupport
import Testing

/// Recording by `ffmpeg -c copy`, as the recipe has it.
@Suite struct RecordingTests {
  /// The options of the recipe's ffmpeg before and behind the URL, without those of segments.
  private static func recipe() throws -> (input: [String], output: [String]) {
    let text = try String(contentsOf: packageRoot.appendingPathComponent("docs/recipes.md"), encoding: .utf8)
    let section = try #require(text.components(separatedBy: "\n## Recording to files\n").dropFirst().first)
    let line = try #require(section.split(separator: "\n").first { $0.hasPrefix("    ffmpeg ") })
    let words = line.split(separator: " ").map(String.init).filter { $0 != "\\" }
    let input = try #require(words.firstIndex(of: "-i"))
    return (Array(words[1..<input]), Array(words[(input + 2)...]))
  }

  @Test(arguments: ["tcp", "udp"])
  func `six containers are written without a word, and every picture has its time`(transport: String) throws {
    let program = try ServedProgram()
    let recipe = try Self.recipe()
    // Ports that no other test has claimed. A larger buffer than the kernel allows would be warned about.
    let ports = transport == "udp" ? ["-min_port", "33000", "-max_port", "60000"] : []
    let input = recipe.input.map { $0 == "tcp" ? transport : $0 } + ports
    let containers = ["mkv", "mp4", "mov", "ts", "avi", "flv"]
    var arguments = ["ffmpeg", "-nostdin", "-v", "warning"] + input + ["-i", program.url()]
    for container in containers {
      arguments += recipe.output + ["-frames:v", "20", program.directory.path("clip.\(container)")]
    }
    let recorder = try Subprocess.run(arguments, in: program.directory)
    #expect(recorder.status == 0 && recorder.error == "", "\(recorder.error)")
    for container in containers {
      let probe = try Subprocess.run(
        [
          "ffprobe", "-v", "error", "-show_entries", "packet=pts_time,dts_time", "-of", "csv=p=0",
          program.directory.path("clip.\(container)"),
        ], in: program.directory)
      // AVI has no times of its own, but frames that follow each other.
      let times = probe.outputText.split(separator: "\n").compactMap { line in
        line.split(separator: ",").lazy.compactMap { Double($0) }.first
      }
      #expect(times.count >= 20, "\(container): \(probe.outputText)")
      let steps = zip(times, times.dropFirst()).map { $1 - $0 }
      // 33 ms, or more where this machine was held up; 11 µs without the options.
      #expect(steps.allSatisfy { $0 > 0.02 }, "\(container): \(steps)")
    }
  }
}
