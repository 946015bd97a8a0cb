import CLinux
import Glibc
package import Platform

/// A file that the kernel generates, below /proc.
package enum KernelFile {
  /// The whole text of the file. Foundation takes the first short read for the end of a file: of a longer table it returns the
  /// first page alone, and what comes after that is missing however often one looks.
  package static func text(_ path: String) throws(SystemFailure) -> String {
    String(decoding: try FileDescriptor(path, O_RDONLY).read(upTo: 1 << 24), as: UTF8.self)
  }
}
