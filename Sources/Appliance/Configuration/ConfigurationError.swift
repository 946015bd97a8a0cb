package import Platform

/// An error of a configuration.
package struct ConfigurationError: Failure, Hashable {
  /// The kind of failure.
  package let kind: FailureKind
  /// A one-line message with the place, the mistake, and the remedy.
  package let description: String
  /// The key in the file, for an error of a key.
  package let key: String?
  /// The line in the file; nil for an error without a line.
  package let line: Int?

  /// - Parameters:
  ///   - place: a file, `FILE:LINE`, a variable, or an option of the command line.
  ///   - key: the key in the file, where the place does not include it.
  package init(_ kind: FailureKind = .data, at place: String, key: String? = nil, _ reason: String) {
    (self.kind, self.key) = (kind, key)
    line = place.lastIndex(of: ":").flatMap { Int(place[place.index(after: $0)...]) }
    description = OneLine.text("\(place): \(key.map { "\($0): " } ?? "")\(reason)")
  }
}

enum OneLine {
  /// Returns `text` without characters that a terminal does not print, truncated to a readable length.
  static func text(_ text: String, limit: Int = 1000) -> String {
    var shown = ""
    for scalar in text.unicodeScalars.prefix(limit) {
      let isControl = scalar.value < 0x20 || (0x7F...0x9F).contains(scalar.value) || isFormatting(scalar.value)
      if isControl { shown += "\\u{\(String(scalar.value, radix: 16))}" } else { shown.unicodeScalars.append(scalar) }
    }
    return text.unicodeScalars.count > limit ? shown + "…" : shown
  }

  /// Returns `true` for line separators and characters that change the writing direction.
  private static func isFormatting(_ value: UInt32) -> Bool {
    (0x2028...0x202E).contains(value) || (0x2066...0x2069).contains(value)
  }
}
