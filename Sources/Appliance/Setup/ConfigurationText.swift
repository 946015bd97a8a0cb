/// The text of a configuration file, in which options are set. Comments, and all other lines, stay as they are.
package struct ConfigurationText {
  private var lines: [String]

  /// Takes a file's text.
  package init(_ text: String) {
    lines = text.split(separator: "\n", omittingEmptySubsequences: false).map(String.init)
    if lines.last?.isEmpty == true { lines.removeLast() }
  }

  /// The text of the file.
  package var text: String { lines.map { $0 + "\n" }.joined() }

  /// Sets an option of the host, above the tables: where it is set, else where a comment shows it, else behind the last
  /// line of that part.
  ///
  /// - Parameter value: as TOML, as in `true` or `"a text"`.
  package mutating func set(_ option: String, to value: String) {
    set(option, to: value, within: 0..<(lines.firstIndex(where: Self.isHeader) ?? lines.count))
  }

  /// Sets an option of the first camera: in its table, or among the host's where the file has no table.
  package mutating func setOfFirstCamera(_ option: String, to value: String) {
    guard let header = lines.firstIndex(where: { Self.words($0).hasPrefix("[[camera]]") }) else {
      return set(option, to: value)
    }
    let end = lines[(header + 1)...].firstIndex(where: Self.isHeader) ?? lines.count
    set(option, to: value, within: (header + 1)..<end)
  }

  private mutating func set(_ option: String, to value: String, within range: Range<Int>) {
    let line = "\(option) = \(value)"
    if let index = lines[range].firstIndex(where: { Self.sets(Self.words($0), option) }) {
      lines[index] = line
    } else if let index = lines[range].firstIndex(where: { $0.hasPrefix("#") && Self.sets($0.dropFirst(), option) }) {
      lines[index] = line
    } else {
      // Not behind the empty lines and comments that introduce the next table.
      let last = lines[range].lastIndex { !$0.isEmpty && !$0.hasPrefix("#") }
      lines.insert(line, at: last.map { $0 + 1 } ?? range.lowerBound)
    }
  }

  private static func sets(_ line: Substring, _ option: String) -> Bool {
    guard line.hasPrefix(option) else { return false }
    return words(String(line.dropFirst(option.count))).hasPrefix("=")
  }

  /// `true` for the first line of a table.
  private static func isHeader(_ line: String) -> Bool { words(line).hasPrefix("[") }

  private static func words(_ line: String) -> Substring { line.drop { $0 == " " || $0 == "\t" } }
}
