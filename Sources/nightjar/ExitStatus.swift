import ArgumentParser
import Platform

extension FailureKind {
  /// The exit code of `sysexits.h`.
  var exitCode: Int32 {
    switch self {
    case .usage: 64
    case .data: 65
    case .noInput: 66
    case .noHost: 68
    case .unavailable: 69
    case .software: 70
    case .system: 71
    case .cannotCreate: 73
    case .inputOutput: 74
    case .temporary: 75
    case .noPermission: 77
    }
  }
}

/// Runs a command. A failure becomes one line on standard error, JSON with `--json`, and an exit code.
func reportingFailures(_ body: () throws -> Void) throws {
  do {
    try body()
  } catch let failure as any Failure {
    FailureOutput.write(failure)
    throw ExitCode(failure.kind.exitCode)
  }
}
