import CLinux

/// The variables that the program was started with.
package enum ProcessEnvironment {
  /// The variables by name; of two with the same name the first, as in getenv(3). Variables that are not UTF-8 are left
  /// out.
  package static var variables: [String: String] {
    var variables: [String: String] = [:]
    guard var next = nightjar_environment() else { return variables }
    while let entry = next.pointee {
      next += 1
      guard let text = String(validatingCString: entry), let sign = text.firstIndex(of: "=") else { continue }
      let name = String(text[..<sign])
      if variables[name] == nil { variables[name] = String(text[text.index(after: sign)...]) }
    }
    return variables
  }
}
