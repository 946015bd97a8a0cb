import Glibc
import Platform

/// Writes to standard error at once. A terminal that is gone is no reason to end.
package func writeError(_ text: String) {
  writeAll(text, to: STDERR_FILENO)
}

/// Writes to standard output. A reader that has seen enough (`| head`) is no failure.
///
/// - Throws: ``ApplianceFailure`` if the text cannot be written in full.
package func writeOutput(_ text: String) throws {
  let error = writeAll(text, to: STDOUT_FILENO)
  guard error == 0 || error == EPIPE else {
    throw ApplianceFailure(
      kind: .inputOutput, description: "cannot write standard output: \(SystemFailure.text(error))")
  }
}

/// Writes all of `text`; gives up if the descriptor accepts no more. Returns 0, or the `errno`.
@discardableResult
package func writeAll(_ text: String, to descriptor: CInt) -> CInt {
  do throws(SystemFailure) {
    try FileDescriptor.write(text.utf8.span.bytes, to: descriptor)
    return 0
  } catch {
    return error.errorNumber
  }
}
