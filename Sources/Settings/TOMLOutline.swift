/// Where tables and keys of a TOML document are (TOML 1.0.0), which the library does not tell. It passes over what it does not
/// understand: whether a document is TOML is for the library to say. But it refuses what no configuration has, before the
/// library sees it: tables other than `[[camera]]` and those of options, dotted keys and inline tables, which could be nested so deeply that the
/// library's recursion ends the program; dates, which it may end by an assertion; NUL, at which its texts end.
struct TOMLOutline {
  /// A key with its value.
  struct Key: Equatable {
    let name: String
    let line: Int
    /// Which `[[camera]]` it stands below; nil above all of them.
    let camera: Int?
    /// Which of ``TOMLOutline/tables`` it stands in; nil where it is an option itself.
    var table: Int?
  }

  /// A table of an option, `[night.controls]` or `[camera.night.controls]`.
  struct Table: Equatable {
    /// Its name's parts, without `camera`.
    let path: [String]
    let line: Int
    /// Whose it is; nil for all cameras.
    let camera: Int?
  }

  /// In the order of the document.
  private(set) var keys: [Key] = []
  /// The lines of the `[[camera]]` headers.
  private(set) var cameraLines: [Int] = []
  /// The tables of options, in the order of the document.
  private(set) var tables: [Table] = []

  private let bytes: [UInt8]
  private let path: String
  /// The options that may be tables.
  private let options: [String]
  private var position = 0
  private var line = 1
  /// The table that keys belong to now.
  private var tableIndex: Int?

  /// - Parameter tables: the options that may be tables, `night-controls` being `[night.controls]`.
  init(_ bytes: [UInt8], path: String, tables: [String] = []) throws(ConfigurationError) {
    self.bytes = bytes
    self.path = path
    options = tables
    // A byte order mark, as some editors write it.
    if bytes.starts(with: [0xEF, 0xBB, 0xBF]) { position = 3 }
    while let byte = current {
      switch byte {
      case Letter.space, Letter.tab, Letter.carriageReturn: position += 1
      case Letter.newline: passNewline()
      case Letter.hash: passLine()
      case Letter.openBracket: try readHeader()
      default: try readPair()
      }
    }
  }

  private enum Letter {
    static let tab: UInt8 = 0x09
    static let newline: UInt8 = 0x0A
    static let carriageReturn: UInt8 = 0x0D
    static let space: UInt8 = 0x20
    static let quote = UInt8(ascii: "\"")
    static let hash = UInt8(ascii: "#")
    static let apostrophe = UInt8(ascii: "'")
    static let dot = UInt8(ascii: ".")
    static let equals = UInt8(ascii: "=")
    static let openBracket = UInt8(ascii: "[")
    static let backslash = UInt8(ascii: "\\")
    static let closeBracket = UInt8(ascii: "]")
    static let comma = UInt8(ascii: ",")
    static let openBrace = UInt8(ascii: "{")
  }

  private var current: UInt8? { position < bytes.count ? bytes[position] : nil }

  private func has(_ byte: UInt8, count: Int) -> Bool {
    position + count <= bytes.count && bytes[position..<position + count].allSatisfy { $0 == byte }
  }

  private func refusal(_ reason: String, key: String? = nil, at line: Int? = nil) -> ConfigurationError {
    ConfigurationError(at: "\(path):\(line ?? self.line)", key: key, reason)
  }

  private mutating func passNewline() {
    position += 1
    line += 1
  }

  private mutating func passLine() {
    while let byte = current, byte != Letter.newline { position += 1 }
  }

  private mutating func passSpace() {
    while let byte = current, byte == Letter.space || byte == Letter.tab { position += 1 }
  }

  /// `[[camera]]` or the table of an option, to the end of its line.
  private mutating func readHeader() throws(ConfigurationError) {
    let isList = has(Letter.openBracket, count: 2)
    position += isList ? 2 : 1
    let parts = try readName(atMost: 4)
    defer { passLine() }
    if !isList, parts != ["camera"], try noteTable(parts) { return }
    guard parts == ["camera"] else {
      // Where there is no name at all, the library would end the program by an assertion.
      let key = parts.first.map { "[\(OneLine.text($0, limit: 64))]" }
      let others = options.map { "[\($0.split(separator: "-").joined(separator: "."))]" }.joined(separator: ", ")
      throw refusal(
        "the only tables are [[camera]], one for each camera\(others.isEmpty ? "" : ", and \(others)")", key: key)
    }
    guard isList else { throw refusal("write [[camera]]: there may be several") }
    guard cameraLines.count < ConfigurationLimits.cameras else {
      throw refusal("there may be \(ConfigurationLimits.cameras) cameras at most; start another nightjar for more")
    }
    cameraLines.append(line)
    tableIndex = nil
  }

  /// Whether it is an option's table.
  private mutating func noteTable(_ parts: [String]) throws(ConfigurationError) -> Bool {
    let isCamera = parts.first == "camera"
    let path = isCamera ? Array(parts.dropFirst()) : parts
    guard options.contains(path.joined(separator: "-")) else { return false }
    let shown = "[\(parts.joined(separator: "."))]"
    guard !isCamera || !cameraLines.isEmpty else {
      throw refusal("write [[camera]] above it, whose table this is", key: shown)
    }
    let camera = isCamera ? cameraLines.count - 1 : nil
    // The library would merge nothing, and says so; what is written in two ways it does not see.
    guard !tables.contains(where: { $0.camera == camera && $0.path.joined() == path.joined() }) else {
      throw refusal("it stands in this file twice: remove one", key: shown)
    }
    tables.append(Table(path: path, line: line, camera: camera))
    tableIndex = tables.count - 1
    return true
  }

  /// `key = value`, to the end of the value's line.
  private mutating func readPair() throws(ConfigurationError) {
    let start = line
    let parts = try readName()
    guard let name = parts.first else { return passLine() }
    let shown = OneLine.text(name, limit: 64)
    guard parts.count == 1 else {
      throw refusal("there are no keys within keys; write one word before the equals sign", key: "\(shown).…")
    }
    guard current == Letter.equals else { return passLine() }
    position += 1
    try passValue(of: shown)
    if let table = tableIndex {
      keys.append(Key(name: name, line: start, camera: tables[table].camera, table: table))
    } else {
      keys.append(Key(name: name, line: start, camera: cameraLines.isEmpty ? nil : cameraLines.count - 1))
    }
  }

  /// The parts of a key, bare or quoted, with what is between them. No more are read than are of use: two of a key are refused.
  private mutating func readName(atMost limit: Int = 2) throws(ConfigurationError) -> [String] {
    var parts: [String] = []
    repeat {
      if !parts.isEmpty { position += 1 }
      passSpace()
      guard let part = try readPart() else { return [] }
      parts.append(part)
      passSpace()
    } while current == Letter.dot && parts.count < limit
    return parts
  }

  private mutating func readPart() throws(ConfigurationError) -> String? {
    guard let first = current else { return nil }
    let isQuoted = first == Letter.quote || first == Letter.apostrophe
    if isQuoted { position += 1 }
    let start = position
    while let byte = current, isQuoted ? byte != first && byte != Letter.newline : Self.isBare(byte) {
      if first == Letter.quote, byte == Letter.backslash {
        throw refusal("no key has a backslash; write it without quotation marks")
      }
      position += 1
    }
    let name = String(decoding: bytes[start..<position], as: UTF8.self)
    guard isQuoted else { return name.isEmpty ? nil : name }
    guard current == first else { return nil }
    position += 1
    return name
  }

  private static func isBare(_ byte: UInt8) -> Bool {
    switch byte {
    case UInt8(ascii: "a")...UInt8(ascii: "z"), UInt8(ascii: "A")...UInt8(ascii: "Z"),
      UInt8(ascii: "0")...UInt8(ascii: "9"), UInt8(ascii: "-"), UInt8(ascii: "_"):
      true
    default: false
    }
  }

  private mutating func passValue(of key: String) throws(ConfigurationError) {
    var depth = 0
    while let byte = current {
      switch byte {
      case Letter.newline:
        if depth <= 0 { return }
        passNewline()
      case Letter.hash: passLine()
      case Letter.openBracket:
        depth += 1
        guard depth < 2 else { throw refusal("there are no lists within lists", key: key) }
        position += 1
      case Letter.closeBracket:
        depth -= 1
        position += 1
      case Letter.openBrace: throw refusal("there are no tables within tables; a camera is a [[camera]]", key: key)
      case Letter.quote, Letter.apostrophe: try passString(byte, of: key)
      case Letter.space, Letter.tab, Letter.carriageReturn, Letter.comma: position += 1
      default: try passWord(of: key, isInList: depth > 0)
      }
    }
  }

  /// What stands there without quotation marks. Dates are refused with all else that no option takes: the library would end
  /// the program by an assertion where one is broken.
  private mutating func passWord(of key: String, isInList: Bool) throws(ConfigurationError) {
    let start = position
    while let byte = current, !Self.endsWord(byte) { position += 1 }
    let word = bytes[start..<position]
    if TOMLNumber.isOne(word) || word.elementsEqual("true".utf8) || word.elementsEqual("false".utf8) { return }
    let shown = OneLine.text(String(decoding: word.prefix(256), as: UTF8.self), limit: 64)
    if ["yes", "no", "on", "off", "true", "false"].contains(shown.lowercased()) {
      throw refusal("\(shown): write true or false, in small letters", key: key)
    }
    let end = isInList ? ", and a list ends with ]" : ""
    throw refusal(
      "\(shown) is no number, nor true or false; a text stands in straight quotation marks (\")\(end)", key: key)
  }

  private static func endsWord(_ byte: UInt8) -> Bool {
    switch byte {
    case Letter.space, Letter.tab, Letter.carriageReturn, Letter.newline, Letter.comma, Letter.hash, Letter.openBracket,
      Letter.closeBracket, Letter.openBrace, Letter.quote, Letter.apostrophe:
      true
    default: false
    }
  }

  /// A string of any of the four kinds.
  private mutating func passString(_ mark: UInt8, of key: String) throws(ConfigurationError) {
    let isLong = has(mark, count: 3)
    position += isLong ? 3 : 1
    while let byte = current {
      if byte == mark, !isLong || has(mark, count: 3) {
        position += isLong ? 3 : 1
        // Two more of them may belong to the text.
        if isLong { for _ in 0..<2 where current == mark { position += 1 } }
        return
      }
      if byte == Letter.newline {
        if !isLong { return }
        passNewline()
        continue
      }
      position += 1
      guard byte == Letter.backslash, mark == Letter.quote, let escaped = current else { continue }
      let digits = escaped == UInt8(ascii: "u") ? 4 : escaped == UInt8(ascii: "U") ? 8 : 0
      if digits > 0 {
        position += 1
        if has(UInt8(ascii: "0"), count: digits) { throw refusal("a text has no NUL in it", key: key) }
      } else if escaped != Letter.newline {
        position += 1
      }
    }
  }
}
