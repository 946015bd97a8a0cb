import Foundation
import TestSupport
import Testing

/// The program with a configuration file that changes.
final class ConfiguredProgram {
  let directory: TemporaryDirectory
  let process: Subprocess
  private let file: URL

  init(
    _ text: String, arguments: [String] = [], environment: [String: String] = [:], until words: String = "streaming"
  ) throws {
    directory = try TemporaryDirectory()
    file = URL(fileURLWithPath: directory.path("nightjar.toml"))
    try Data(text.utf8).write(to: file)
    process = try Subprocess(
      [nightjarPath, "stream", "--config", file.path, "--control", directory.path("control")] + arguments,
      in: directory, environment: environment)
    let process = process
    _ = eventually(within: 120) { process.errorSoFar.contains(words) || !process.isRunning }
    try #require(process.errorSoFar.contains(words), "\(process.errorSoFar)")
  }

  deinit { process.send(SIGKILL) }

  func write(_ text: String) throws { try Data(text.utf8).write(to: file, options: .atomic) }

  func control(_ arguments: String...) throws -> Subprocess.Result {
    try Subprocess.run([nightjarPath, "ctl"] + arguments + ["--socket", directory.path("control")], in: directory)
  }

  /// `ctl … --json` of a command that succeeds.
  func answer(_ arguments: String...) throws -> [String: Any] {
    let result = try Subprocess.run(
      [nightjarPath, "ctl"] + arguments + ["--json", "--socket", directory.path("control")], in: directory)
    #expect(result.status == 0, "\(result.error)")
    return try #require(try JSONSerialization.jsonObject(with: result.output) as? [String: Any])
  }

  /// Returns the outcome of a reload for each camera; by curl, which starts sooner than `nightjar ctl`.
  func reload() throws -> [String: String] {
    let result = try Subprocess.run(
      [
        "curl", "-sSf", "--max-time", "100", "--unix-socket", directory.path("control"), "-X", "POST",
        "http://localhost/v1/reload",
      ], in: directory)
    #expect(result.status == 0, "\(result.error)")
    let answer = try JSONSerialization.jsonObject(with: result.output) as? [String: Any]
    let cameras = answer?["cameras"] as? [[String: Any]] ?? []
    return Dictionary(
      uniqueKeysWithValues: cameras.map { ($0["name"] as? String ?? "", $0["outcome"] as? String ?? "") })
  }

  func end() throws {
    process.send(SIGTERM)
    let result = try process.wait(limit: 60)
    #expect(result.status == 0, "\(result.error)")
  }
}
