import CLinux
import Glibc

/// A pipe(2) that no other program inherits.
package struct Pipe: ~Copyable {
  private let exit: FileDescriptor
  private var entry: FileDescriptor?
  /// The descriptor to read from.
  package var reading: CInt { exit.number }
  /// The descriptor to write to, until ``endWriting()``.
  package let writing: CInt

  /// Creates a pipe that holds `content`.
  ///
  /// - Parameter content: at most what any pipe holds, 4096 bytes.
  /// - Throws: ``SystemFailure`` called `pipe`, or `write` with `EMSGSIZE` where there is more content.
  package init(_ content: [UInt8] = []) throws(SystemFailure) {
    guard content.count <= 4096 else { throw SystemFailure("write", errorNumber: EMSGSIZE) }
    var ends: [CInt] = [-1, -1]
    try syscall("pipe") { nightjar_pipe(&ends) }
    do throws(SystemFailure) {
      try FileDescriptor.write(content.span.bytes, to: ends[1])
    } catch {
      for end in ends { close(end) }
      throw error
    }
    exit = FileDescriptor(owning: ends[0])
    entry = FileDescriptor(owning: ends[1])
    writing = ends[1]
  }

  /// Ends the input of the pipe, so that its reader meets the end.
  package mutating func endWriting() { entry = nil }
}
