extension TOMLDocument {
  /// Reads a value, which is nested in `depth` tables and arrays.
  mutating func readValue(depth: Int, isInList: Bool = false) throws(Mistake) -> TOMLValue {
    guard depth <= Self.depthLimit else { throw tooDeep }
    switch current {
    case "\"", "'": return .string(try readString())
    case "[": return .array(try readArray(depth: depth))
    case "{": return .table(try readInlineTable(depth: depth))
    default: return try readWord(isInList: isInList)
    }
  }

  private mutating func readArray(depth: Int) throws(Mistake) -> [TOMLValue] {
    var elements: [TOMLValue] = []
    openCount += 1
    repeat {
      position += 1
      try passLines()
      if current == "]" { break }
      elements.append(try readValue(depth: depth + 1, isInList: true))
      try passLines()
    } while current == ","
    guard current == "]" else { throw unexpected("a comma or ], as a list ends with ]") }
    position += 1
    openCount -= 1
    return elements
  }

  /// Skips spaces, comments and newlines.
  private mutating func passLines() throws(Mistake) {
    repeat {
      passSpace()
      if current == "#" { try readLineEnd() }
    } while passNewline() || current == " " || current == "\t" || current == "#"
  }

  private mutating func readInlineTable(depth: Int) throws(Mistake) -> TOMLTable {
    let table = TOMLTable(.inline)
    repeat {
      position += 1
      passSpace()
      if current == "}", table.entries.isEmpty { break }
      let line = line
      let (path, value) = try readPair(depth: depth)
      try add(value, at: path, to: table, line: line)
      passSpace()
    } while current == ","
    guard current == "}" else { throw unexpected("a comma or } in a table within braces") }
    position += 1
    return table
  }

  // MARK: - Words

  /// Reads a value without quotation marks.
  private mutating func readWord(isInList: Bool) throws(Mistake) -> TOMLValue {
    var word = prefix(while: Self.isOfWord)
    guard !word.isEmpty else { throw unexpected("a value") }
    // A space may stand between a date and a time.
    if TOMLDateTime(word)?.kind == .localDate, bytes[word.endIndex...].first == 0x20 {
      let time = bytes[(word.endIndex + 1)...].prefix { Self.isOfWord(Unicode.Scalar($0)) }
      if let digit = time.first, TOMLNumber.isDigit(digit) { word = bytes[position..<time.endIndex] }
    }
    position = word.endIndex
    if word.elementsEqual("true".utf8) { return .boolean(true) }
    if word.elementsEqual("false".utf8) { return .boolean(false) }
    let number = TOMLNumber(word)
    if case .integer(let integer?) = number { return .integer(integer) }
    if case .float(let float) = number { return .float(float) }
    if let date = TOMLDateTime(word) { return .dateTime(date) }
    let shown = OneLine.text(String(decoding: word.prefix(256), as: UTF8.self), limit: 64)
    if number != nil { throw mistake("invalid TOML: \(shown) does not fit 64 bits") }
    let place = key.map { OneLine.text($0, limit: 64) + ": " } ?? ""
    if ["yes", "no", "on", "off", "true", "false"].contains(shown.lowercased()) {
      throw mistake("\(place)\(shown): write true or false, in small letters")
    }
    throw mistake(place + Self.noValue(shown) + (isInList ? ", and a list ends with ]" : ""))
  }

  /// Returns the error message for a word that is no value.
  static func noValue(_ word: String) -> String {
    "\(word) is not a number, true or false; put a text into straight quotation marks (\")"
  }

  private static func isOfWord(_ letter: Unicode.Scalar) -> Bool {
    !isControl(letter) && !" \t,#[]{}\"'".unicodeScalars.contains(letter)
  }

  // MARK: - Strings

  /// Reads a string of any of the four kinds.
  mutating func readString(mayBeLong: Bool = true) throws(Mistake) -> String {
    let (start, startLine) = (position, line)
    let mark = has("'") ? "'" : "\""
    let isLong = mayBeLong && has(mark + mark + mark)
    let end = isLong ? mark + mark + mark : mark
    position += end.utf8.count
    openCount += isLong ? 1 : 0
    if isLong { passNewline() }
    var text: [UInt8] = []
    while let letter = current {
      if has(end) {
        // Two more quotation marks may belong to the text.
        for _ in 0..<2 where isLong && has(end + mark) {
          text += mark.utf8
          position += 1
        }
        position += end.utf8.count
        openCount -= isLong ? 1 : 0
        guard let string = String(validating: text, as: UTF8.self) else { throw noText(startLine) }
        return string
      }
      if letter == "\\", mark == "\"" {
        position += 1
        try readEscape(isLong: isLong, into: &text)
      } else if !Self.isControl(letter) {
        text.append(bytes[position])
        position += 1
      } else if !isLong, has("\n") || has("\r\n") {
        break
      } else if passNewline() {
        text += "\n".utf8
      } else {
        throw unexpected("a text without control characters")
      }
    }
    // The following text may contain statements, which are then read.
    (position, line) = (start, startLine)
    throw mistake("a text ends with a quotation mark, and here is none")
  }

  /// Reads an escape sequence after its backslash.
  private mutating func readEscape(isLong: Bool, into text: inout [UInt8]) throws(Mistake) {
    if let letter = current, let meant = Self.escapes[letter] {
      text.append(meant)
      position += 1
    } else if has("u") || has("U") {
      let count = has("u") ? 4 : 8
      let digits = bytes[(position + 1)...].prefix(count).prefix { TOMLNumber.isDigit($0, of: 16) }
      guard digits.count == count,
        let scalar = UInt32(String(decoding: digits, as: UTF8.self), radix: 16).flatMap(Unicode.Scalar.init)
      else {
        throw mistake("invalid TOML: after \\u come four digits from 0 to F, after \\U eight, of a letter's number")
      }
      text += String(scalar).utf8
      position = digits.endIndex
    } else {
      if isLong { passSpace() }
      guard isLong, passNewline() else { throw unexpected("b, t, n, f, r, \", \\, u or U after a backslash") }
      // The text continues with the next letter, however many lines below.
      repeat { passSpace() } while passNewline()
    }
  }

  private static let escapes: [Unicode.Scalar: UInt8] = [
    "b": 0x08, "t": 0x09, "n": 0x0A, "f": 0x0C, "r": 0x0D, "\"": 0x22, "\\": 0x5C,
  ]
}
