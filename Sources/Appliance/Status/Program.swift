import Glibc
import Platform

/// The program.
package enum Program {
  /// The version of the program.
  package static var version: String { Release.version }

  /// The path of the program's file, to run it as another user.
  package static var path: String {
    guard let path = realpath("/proc/self/exe", nil) else { return "nightjar" }
    defer { free(path) }
    return String(cString: path)
  }
}
