import ArgumentParser
import Glibc
import Media
import RTP
import Streaming

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

/// A failure that only the command line can have.
struct CommandFailure: Failure {
  let kind: FailureKind
  let description: String
}

/// Runs a command; a failure becomes one line on standard error, with `--json` of JSON, and an exit code.
func reportingFailures(_ body: () throws -> Void) throws {
  do {
    try body()
  } catch let failure as any Failure {
    FailureOutput.write(failure)
    throw ExitCode(failure.kind.exitCode)
  }
}

/// Writes to standard error at once; a terminal that is gone is no reason to end.
func writeError(_ text: String) {
  writeAll(text, to: STDERR_FILENO)
}

/// Writes to standard output. A reader that has seen enough (`| head`) is no failure.
///
/// - Throws: ``CommandFailure`` where not all could be written.
func writeOutput(_ text: String) throws {
  let error = writeAll(text, to: STDOUT_FILENO)
  guard error == 0 || error == EPIPE else {
    throw CommandFailure(
      kind: .inputOutput, description: "cannot write standard output: \(SystemFailure.text(error))")
  }
}

/// Writes all of `text`; gives up where the descriptor takes no more. Returns 0, or the `errno`.
@discardableResult
func writeAll(_ text: String, to descriptor: CInt) -> CInt {
  var text = text
  return text.withUTF8 { bytes in
    var rest = UnsafeRawBufferPointer(bytes)
    while !rest.isEmpty {
      let written = write(descriptor, rest.baseAddress, rest.count)
      if written < 0, errno == EINTR { continue }
      guard written > 0 else { return written < 0 ? errno : EIO }
      rest = UnsafeRawBufferPointer(rebasing: rest[written...])
    }
    return 0
  }
}
