import Glibc

/// The names in a directory.
package enum Directory {
  /// The limit of names that are visited.
  package static let limit = 100_000

  /// Calls `body` with each name except `.` and `..`, in no order; not at all where the directory cannot be read.
  package static func forEachName(in path: String, _ body: (String) -> Void) {
    guard let directory = opendir(path) else { return }
    defer { closedir(directory) }
    for _ in 0..<limit {
      guard let entry = readdir(directory) else { return }
      let name = withUnsafeBytes(of: &entry.pointee.d_name) { field in
        String(decoding: field.prefix { $0 != 0 }, as: UTF8.self)
      }
      if name != ".", name != ".." { body(name) }
    }
  }
}
