import Foundation

/// Returns the standard output of `command`, which must succeed.
package func output(of command: String) throws -> [UInt8] {
  let result = try Subprocess.run(["sh", "-c", command], in: TemporaryDirectory())
  guard result.status == 0 else { throw ShellFailure(command: command, status: result.status, error: result.error) }
  return Array(result.output)
}

/// A command that failed.
package struct ShellFailure: Error, CustomStringConvertible {
  fileprivate let command: String
  fileprivate let status: Int32
  fileprivate let error: String

  /// The command, its status and what it said.
  package var description: String { "status \(status) from \(command): \(error)" }
}
