import ArgumentParser
import Control
import Glibc
import Media

/// How a command says why it failed: one line for a person, or with `--json` the object `Failure` of docs/openapi.json in
/// one line. Both go to standard error, so that standard output holds nothing but answers.
enum FailureOutput {
  /// The commands that have the flag `--json`.
  private static let commands: Set = ["ctl", "devices", "discover", "doctor"]

  /// Whether this process was started with `--json`.
  static let isJSON = isJSON(Array(CommandLine.arguments.dropFirst()))

  /// Whether `words`, which follow the program's name, ask for JSON.
  static func isJSON(_ words: [String]) -> Bool {
    guard let command = words.first, commands.contains(command) else { return false }
    return words.prefix { $0 != "--" }.contains("--json")
  }

  /// Says why the command failed.
  static func write(_ failure: any Failure) {
    guard isJSON else { return Terminal.failure(failure.description) }
    writeError(ControlFailure(failure).json)
  }

  /// Ends the program as ArgumentParser does, but says in JSON what is wrong with the command line where JSON is wanted.
  static func exit(withError error: any Error) -> Never {
    let code = Nightjar.exitCode(for: error)
    // What was only asked for, and what has been told already, is for ArgumentParser.
    guard isJSON, !code.isSuccess, !(error is ExitCode) else { Nightjar.exit(withError: error) }
    write(CommandFailure(kind: .usage, description: Nightjar.message(for: error)))
    Glibc.exit(code.rawValue)
  }
}
