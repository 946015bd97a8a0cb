import ArgumentParser
import Platform

/// Runs a command. A failure becomes one line on standard error, JSON with `--json`, and an exit code.
func reportingFailures(_ body: () throws -> Void) throws {
  do {
    try body()
  } catch let failure as any Failure {
    FailureOutput.write(failure)
    throw ExitCode(failure.kind.exitCode)
  }
}
