import Appliance
import ArgumentParser
import Glibc
import Platform
import Serving

/// The output of a command that fails: one line for a person, or with `--json` the object `Failure` of
/// docs/openapi.json in one line. Both go to standard error, so that standard output holds nothing but answers.
enum FailureOutput {
  /// The commands that have the flag `--json`.
  private static let commands: Set = ["ctl", "devices", "discover", "doctor", "events"]

  /// `true` if this process was started with `--json`.
  static let isJSON = isJSON(Array(CommandLine.arguments.dropFirst()))

  /// Returns `true` if `words`, the arguments of the program, request JSON.
  static func isJSON(_ words: [String]) -> Bool {
    guard let command = words.first, commands.contains(command) else { return false }
    return words.prefix { $0 != "--" }.contains("--json")
  }

  /// Writes the reason why the command failed.
  static func write(_ failure: any Failure) {
    guard isJSON else { return Terminal.failure(failure.description) }
    writeError(ControlFailure(failure).json)
  }

  /// Ends the program like ArgumentParser, but reports a wrong command line in JSON if JSON is requested.
  static func exit(withError error: any Error) -> Never {
    let code = Nightjar.exitCode(for: error)
    // ArgumentParser handles help and version, and failures that have been reported already.
    guard isJSON, !code.isSuccess, !(error is ExitCode) else { Nightjar.exit(withError: error) }
    write(ApplianceFailure(kind: .usage, description: Nightjar.message(for: error)))
    Glibc.exit(code.rawValue)
  }
}
