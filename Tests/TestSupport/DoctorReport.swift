import Foundation

/// The report of `nightjar doctor --json`.
package struct DoctorReport: Sendable {
  /// One line of it.
  package struct Finding: Decodable, Sendable {
    /// A remedy.
    package struct Mend: Decodable, Sendable {
      /// For a shell.
      package let command: String?
      /// For a person.
      package let advice: String?
    }

    /// The name of the finding.
    package let key: String
    /// `ok`, `warning` or `problem`.
    package let status: String
    /// The camera, among several.
    package let camera: String?
    /// For a person.
    package let text: String
    /// The best first.
    package let mends: [Mend]
    /// The measured values.
    package let figures: [String: Double]

    /// The commands among its mends.
    package var commands: [String] { mends.compactMap(\.command) }
  }

  private struct Document: Decodable {
    let status: String
    let findings: [Finding]
  }

  /// The exit code.
  package let exitCode: Int32
  /// The worst of all.
  package let status: String
  /// All, in order.
  package let findings: [Finding]
  /// Seconds that it took.
  package let seconds: Double

  /// Runs it in `directory`, where its state and its users are too, unless told.
  ///
  /// - Parameters:
  ///   - options: of the stream that is to be looked at.
  ///   - own: its own options.
  ///   - before: what goes before the program.
  package init(
    _ options: [String], own: [String] = [], before: [String] = [], environment: [String: String] = [:],
    in directory: TemporaryDirectory
  ) throws {
    let socket = own.contains("--socket") ? [] : ["--socket", directory.path("no-stream")]
    let variables = [
      "STATE_DIRECTORY": directory.path("state"), "XDG_CONFIG_HOME": directory.path("config"),
      "XDG_RUNTIME_DIR": directory.path("runtime"),
    ]
    let start = Date()
    let result = try Subprocess.run(
      before + [nightjarPath, "doctor", "--json"] + socket + own + ["--"] + options, in: directory,
      environment: variables.merging(environment) { $1 }, limit: 300)
    seconds = Date().timeIntervalSince(start)
    exitCode = result.status
    do {
      let document = try JSONDecoder().decode(Document.self, from: result.output)
      (status, findings) = (document.status, document.findings)
    } catch {
      throw Unreadable(text: "exit code \(result.status): \(result.outputText)\(result.error)")
    }
  }

  /// The first of that key.
  package subscript(key: String) -> Finding? { findings.first { $0.key == key } }

  /// Returns `true` if there is one of that key.
  package func has(_ key: String) -> Bool { self[key] != nil }

  /// The error of a report that is no JSON of the doctor's.
  package struct Unreadable: Error {
    let text: String
  }
}

/// Runs a command that the doctor gave, as it stands, but that `nightjar` is the one under test and root needs no sudo.
package func runMend(
  _ command: String, input: String = "", before: [String] = [], environment: [String: String] = [:],
  in directory: TemporaryDirectory
) throws -> Subprocess.Result {
  let folder = URL(fileURLWithPath: nightjarPath).deletingLastPathComponent().path
  let text = geteuid() == 0 ? command.replacingOccurrences(of: "sudo ", with: "") : command
  return try Subprocess.run(
    before + ["sh", "-c", "PATH=\"$0:$PATH\"; printf %s \"$1\" | { \(text); }", folder, input], in: directory,
    environment: ["XDG_CONFIG_HOME": directory.path("config")].merging(environment) { $1 })
}
