import CLinux

/// The variables that the program was started with.
enum ProcessEnvironment {
  /// By name; of two of the same name the first, as getenv(3) takes it. What is no UTF-8 is left out.
  static var variables: [String: String] {
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
