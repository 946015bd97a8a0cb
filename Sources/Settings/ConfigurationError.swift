public import Media

/// Why a configuration is refused.
public struct ConfigurationError: Failure, Hashable {
  /// What kind of failure it is.
  public let kind: FailureKind
  /// One line: where it is, what is wrong, and the mend.
  public let description: String
  /// The key in the file, where one is wrong.
  public let key: String?
  /// The line of the file; nil for what has none.
  public let line: Int?

  /// - Parameters:
  ///   - place: a file, `FILE:LINE`, a variable, or an option of the command line.
  ///   - key: the key in the file, where the place does not name it.
  public init(_ kind: FailureKind = .data, at place: String, key: String? = nil, _ reason: String) {
    (self.kind, self.key) = (kind, key)
    line = place.lastIndex(of: ":").flatMap { Int(place[place.index(after: $0)...]) }
    description = OneLine.text("\(place): \(key.map { "\($0): " } ?? "")\(reason)")
  }
}

enum OneLine {
  /// `text` without anything that a terminal would not print as a letter, and not longer than a person reads.
  static func text(_ text: String, limit: Int = 1000) -> String {
    var shown = ""
    for scalar in text.unicodeScalars.prefix(limit) {
      let isControl = scalar.value < 0x20 || (0x7F...0x9F).contains(scalar.value) || isFormatting(scalar.value)
      if isControl { shown += "\\u{\(String(scalar.value, radix: 16))}" } else { shown.unicodeScalars.append(scalar) }
    }
    return text.unicodeScalars.count > limit ? shown + "…" : shown
  }

  /// Line separators, and what turns the direction of writing.
  private static func isFormatting(_ value: UInt32) -> Bool {
    (0x2028...0x202E).contains(value) || (0x2066...0x2069).contains(value)
  }
}
