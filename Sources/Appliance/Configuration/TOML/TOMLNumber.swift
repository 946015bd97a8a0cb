/// An integer or float of TOML.
enum TOMLNumber {
  /// An integer; nil where it has more than 64 bits.
  case integer(Int64?)
  /// A float.
  case float(Double)

  /// Parses `word` as a whole; nil where it is no number.
  init?(_ word: ArraySlice<UInt8>) {
    var rest = word
    let text = String(decoding: word.filter { $0 != UInt8(ascii: "_") }, as: UTF8.self)
    if let radix = Self.radices[text.prefix(2)] {
      rest = rest.dropFirst(2)
      guard Self.takeDigits(of: radix, &rest), rest.isEmpty else { return nil }
      self = .integer(Int64(text.dropFirst(2), radix: radix))
      return
    }
    Self.takeSign(&rest)
    let whole = rest
    if !rest.elementsEqual("inf".utf8), !rest.elementsEqual("nan".utf8) {
      // No leading zeros.
      guard Self.takeDigits(&rest), whole.first != UInt8(ascii: "0") || rest.startIndex - whole.startIndex == 1 else {
        return nil
      }
      if rest.isEmpty {
        self = .integer(Int64(text))
        return
      }
      if rest.first == UInt8(ascii: ".") {
        rest.removeFirst()
        guard Self.takeDigits(&rest) else { return nil }
      }
      if let letter = rest.first, "eE".utf8.contains(letter) {
        rest.removeFirst()
        Self.takeSign(&rest)
        guard Self.takeDigits(&rest) else { return nil }
      }
      guard rest.isEmpty else { return nil }
    }
    guard let float = Double(text) else { return nil }
    self = .float(float)
  }

  private static let radices: [Substring: Int] = ["0x": 16, "0o": 8, "0b": 2]

  private static func takeSign(_ rest: inout ArraySlice<UInt8>) {
    if let sign = rest.first, "+-".utf8.contains(sign) { rest.removeFirst() }
  }

  /// Skips one or more digits with single underscores between them; returns `false` where there is none.
  private static func takeDigits(of radix: Int = 10, _ rest: inout ArraySlice<UInt8>) -> Bool {
    let groups = rest.prefix { isDigit($0, of: radix) || $0 == UInt8(ascii: "_") }
    rest = rest[groups.endIndex...]
    return groups.split(separator: UInt8(ascii: "_"), omittingEmptySubsequences: false).allSatisfy { !$0.isEmpty }
  }

  static func isDigit(_ byte: UInt8) -> Bool { isDigit(byte, of: 10) }

  static func isDigit(_ byte: UInt8, of radix: Int) -> Bool {
    (Character(Unicode.Scalar(byte)).hexDigitValue ?? radix) < radix
  }
}
