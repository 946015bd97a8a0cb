import Glibc

/// The program.
package enum Program {
  /// The version of the program.
  package static let version = "0.1.0"

  /// The path of the program's file, to run it as another user.
  package static var path: String {
    guard let path = realpath("/proc/self/exe", nil) else { return "nightjar" }
    defer { free(path) }
    return String(cString: path)
  }
}
