/// A document of TOML 1.0.0, parsed from its bytes.
package struct TOMLDocument {
  /// A header, with the table of the keys below it.
  package struct Section {
    package let line: Int
    /// The parts of the header's name; empty where the header is wrong, so that its table belongs nowhere.
    package var path: [String] = []
    /// `true` for `[[name]]`.
    package var isList = false
    package var table = TOMLTable(.header)
  }

  /// A mistake in a document.
  package struct Mistake: Error, Hashable {
    /// The line of the mistake, from 1.
    package let line: Int
    /// The mistake and its remedy.
    package let reason: String
    /// The first part of the key whose value is lost; nil where no value is lost.
    package let key: String?
  }

  /// The nesting limit of tables and arrays.
  static let depthLimit = 64

  /// The table that holds all others.
  package let root = TOMLTable(.header)
  /// The headers, in the order of the document.
  package private(set) var sections: [Section] = []
  /// The mistakes, in the order of the document. A statement with a mistake is left out, and the next one is read.
  package private(set) var mistakes: [Mistake] = []

  let bytes: [UInt8]
  var position = 0
  var line = 1
  /// The first part of the key whose value is being read.
  var key: String?
  /// The number of open lists and multi-line texts in the statement.
  var openCount = 0

  /// Parses a document.
  ///
  /// - Parameters:
  ///   - bytes: the document, UTF-8 or not.
  ///   - limit: the number of mistakes at which parsing stops.
  package init(_ bytes: [UInt8], mistakes limit: Int = 1) {
    self.bytes = bytes
    // A byte order mark, which some editors write.
    if has("\u{FEFF}") { position = 3 }
    while position < bytes.count, mistakes.count < limit {
      let start = position
      (key, openCount) = (nil, 0)
      do throws(Mistake) {
        try readStatement()
      } catch {
        mistakes.append(error)
        passMistake(from: start)
      }
    }
  }

  // MARK: - Statements

  private mutating func readStatement() throws(Mistake) {
    passSpace()
    let line = line
    switch current {
    case nil, "\n", "\r", "#": try readLineEnd()
    case "[":
      sections.append(Section(line: line))
      sections[sections.count - 1] = try readHeader()
    default:
      let (path, value) = try readPair(depth: sections.last?.path.count ?? 0)
      try readLineEnd()
      try add(value, at: path, to: sections.last?.table ?? root, line: line)
    }
  }

  /// Skips the statement at `start`, which has a mistake. Where a list or text is open, that is to the next line that
  /// begins a statement, possibly the line of the mistake.
  private mutating func passMistake(from start: Int) {
    let lineStart = bytes[..<position].lastIndex(of: 0x0A).map { $0 + 1 } ?? 0
    if lineStart > start, openCount > 0 || position == lineStart { position = lineStart } else { passLine() }
    while openCount > 0, position < bytes.count, !beginsStatement { passLine() }
  }

  /// `true` if a key with an equals sign or a header follows. The second line of a list is neither: it has a comma or a
  /// quotation mark.
  private var beginsStatement: Bool {
    var ahead = self
    ahead.passSpace()
    if ahead.current == "[" { return !ahead.prefix { $0 != "\n" }.contains { ",\"".utf8.contains($0) } }
    // Only a look: a key that cannot be read begins no statement, and the mistake is told where it is read.
    return (try? ahead.readKey()) != nil && ahead.current == "="
  }

  /// Reads `[a.b]` or `[[a.b]]` to the end of its line.
  private mutating func readHeader() throws(Mistake) -> Section {
    let (line, isList) = (line, has("[["))
    position += isList ? 2 : 1
    let path = try readKey()
    let end = isList ? "]]" : "]"
    guard has(end) else { throw unexpected("\(end) at the end of a table's name") }
    position += end.utf8.count
    try readLineEnd()
    let parent = try table(at: path.dropLast(), in: root, by: .superTable, line: line)
    let name = path[path.count - 1]
    var section = Section(line: line, path: path, isList: isList)
    switch parent[name]?.value {
    case nil: parent.add(name, line: line, isList ? .tables(TOMLTableList(section.table)) : .table(section.table))
    case .tables(let list) where isList: list.tables.append(section.table)
    case .table(let table) where table.kind == .superTable && !isList:
      table.kind = .header
      section.table = table
    default: throw repetition(of: name, in: parent, line: line, shown: "[\(path.joined(separator: "."))]")
    }
    return section
  }

  /// Reads `key = value`; the value is nested in `depth` tables and arrays.
  mutating func readPair(depth: Int) throws(Mistake) -> (path: [String], value: TOMLValue) {
    let path = try readKey()
    if key == nil { key = path[0] }
    guard current == "=" else { throw unexpected("= after a key") }
    position += 1
    passSpace()
    return (path, try readValue(depth: depth + path.count))
  }

  /// Adds a value to `table` or, by a dotted key, to a table in it.
  func add(_ value: TOMLValue, at path: [String], to table: TOMLTable, line: Int) throws(Mistake) {
    let table = try self.table(at: path.dropLast(), in: table, by: .dottedKey, line: line)
    let name = path[path.count - 1]
    guard table[name] == nil else { throw repetition(of: name, in: table, line: line) }
    table.add(name, line: line, value)
  }

  /// Returns the table at `path` in `table`. A longer header or a dotted key, as `kind` says, creates missing tables.
  private func table(
    at path: ArraySlice<String>, in table: TOMLTable, by kind: TOMLTable.Kind, line: Int
  ) throws(Mistake) -> TOMLTable {
    var table = table
    for part in path {
      switch table[part]?.value {
      case nil:
        let made = TOMLTable(kind)
        table.add(part, line: line, .table(made))
        table = made
      case .table(let inner) where kind == .superTable && inner.kind != .inline: table = inner
      case .table(let inner) where inner.kind == .dottedKey || inner.kind == .superTable:
        inner.kind = .dottedKey
        table = inner
      case .tables(let list) where kind == .superTable: table = list.tables[list.tables.count - 1]
      default: throw repetition(of: part, in: table, line: line)
      }
    }
    return table
  }

  /// Reads a key and the space behind it. The key's parts are bare or quoted, with dots between them.
  private mutating func readKey() throws(Mistake) -> [String] {
    var parts: [String] = []
    repeat {
      if !parts.isEmpty { position += 1 }
      guard parts.count < Self.depthLimit else { throw tooDeep }
      passSpace()
      if current == "\"" || current == "'" {
        parts.append(try readString(mayBeLong: false))
      } else {
        let name = prefix(while: Self.isBare)
        guard !name.isEmpty else { throw unexpected("a key") }
        parts.append(String(decoding: name, as: UTF8.self))
        position = name.endIndex
      }
      passSpace()
    } while current == "."
    return parts
  }

  // MARK: - Letters and lines

  /// The next byte to read, as a scalar if it is ASCII.
  var current: Unicode.Scalar? { position < bytes.count ? Unicode.Scalar(bytes[position]) : nil }

  func has(_ text: String) -> Bool { bytes[position...].starts(with: text.utf8) }

  func prefix(while isPart: (Unicode.Scalar) -> Bool) -> ArraySlice<UInt8> {
    bytes[position...].prefix { isPart(Unicode.Scalar($0)) }
  }

  static func isBare(_ letter: Unicode.Scalar) -> Bool {
    switch letter {
    case "a"..."z", "A"..."Z", "0"..."9", "-", "_": true
    default: false
    }
  }

  static func isControl(_ letter: Unicode.Scalar) -> Bool { letter < " " && letter != "\t" || letter == "\u{7F}" }

  mutating func passSpace() { position = prefix { $0 == " " || $0 == "\t" }.endIndex }

  /// Skips a newline and returns `true` if there is one.
  @discardableResult mutating func passNewline() -> Bool {
    guard has("\n") || has("\r\n") else { return false }
    position += has("\n") ? 1 : 2
    line += 1
    return true
  }

  private mutating func passLine() {
    position = prefix { $0 != "\n" }.endIndex
    passNewline()
  }

  /// Reads spaces, a comment and the line's end.
  mutating func readLineEnd() throws(Mistake) {
    passSpace()
    if current == "#" {
      let comment = prefix { !Self.isControl($0) }
      guard String(validating: comment, as: UTF8.self) != nil else { throw noText(line) }
      position = comment.endIndex
    }
    guard passNewline() || current == nil else { throw unexpected("the end of the line") }
  }
}

// MARK: - Mistakes

extension TOMLDocument {
  func mistake(_ reason: String, at line: Int? = nil) -> Mistake {
    Mistake(line: line ?? self.line, reason: reason, key: key)
  }

  /// Returns the mistake that something other than `expected` is at this position.
  func unexpected(_ expected: String) -> Mistake {
    let lack = "invalid TOML: expected \(expected), but "
    // Something missing at the end is reported in the last line with content.
    guard let letter = current else { return mistake(lack + "the file ends", at: bytes.last == 0x0A ? line - 1 : line) }
    if letter == "\0" { return mistake("there is a NUL; is it a text file?") }
    if has("\n") || has("\r\n") { return mistake(lack + "the line ends") }
    let rest = bytes[position...]
    let letters = (1...4).lazy.compactMap { String(validating: rest.prefix($0), as: UTF8.self) }
    return letters.first.map { mistake(lack + "here is '\($0)'") } ?? noText(line)
  }

  func noText(_ line: Int) -> Mistake { mistake("the file is not UTF-8; save it as UTF-8", at: line) }

  var tooDeep: Mistake { mistake("tables and lists may be nested \(Self.depthLimit) deep at most") }

  private func repetition(of name: String, in table: TOMLTable, line: Int, shown: String? = nil) -> Mistake {
    let first = table[name].map { ", first in line \($0.line)" } ?? ""
    return mistake(
      "\(OneLine.text(shown ?? name, limit: 64)): it is in this file twice\(first): remove one", at: line)
  }
}
