/// Integers and floats of TOML 1.0.0, as they are written.
enum TOMLNumber {
  /// Whether `word` is one, whole. How large it is does not matter here.
  static func isOne(_ word: ArraySlice<UInt8>) -> Bool {
    var rest = word
    if rest.count > 2, rest.first == UInt8(ascii: "0"), let digits = digits(ofPrefix: rest[rest.startIndex + 1]) {
      rest.removeFirst(2)
      return take(&rest, where: digits) && rest.isEmpty
    }
    if rest.first == UInt8(ascii: "+") || rest.first == UInt8(ascii: "-") { rest.removeFirst() }
    if rest.elementsEqual("inf".utf8) || rest.elementsEqual("nan".utf8) { return true }
    let whole = rest
    guard take(&rest, where: isDecimal) else { return false }
    // No leading zeros.
    if whole.first == UInt8(ascii: "0"), rest.startIndex - whole.startIndex > 1 { return false }
    if rest.first == UInt8(ascii: ".") {
      rest.removeFirst()
      guard take(&rest, where: isDecimal) else { return false }
    }
    if rest.first == UInt8(ascii: "e") || rest.first == UInt8(ascii: "E") {
      rest.removeFirst()
      if rest.first == UInt8(ascii: "+") || rest.first == UInt8(ascii: "-") { rest.removeFirst() }
      guard take(&rest, where: isDecimal) else { return false }
    }
    return rest.isEmpty
  }

  /// Takes one digit or more, with single underscores between them.
  private static func take(_ rest: inout ArraySlice<UInt8>, where isDigit: (UInt8) -> Bool) -> Bool {
    guard let first = rest.first, isDigit(first) else { return false }
    rest.removeFirst()
    while let byte = rest.first {
      if isDigit(byte) {
        rest.removeFirst()
      } else if byte == UInt8(ascii: "_"), let next = rest.dropFirst().first, isDigit(next) {
        rest.removeFirst(2)
      } else {
        break
      }
    }
    return true
  }

  private static func digits(ofPrefix letter: UInt8) -> ((UInt8) -> Bool)? {
    switch letter {
    case UInt8(ascii: "x"): { isDecimal($0) || (UInt8(ascii: "a")...UInt8(ascii: "f")).contains($0 | 0x20) }
    case UInt8(ascii: "o"): { (UInt8(ascii: "0")...UInt8(ascii: "7")).contains($0) }
    case UInt8(ascii: "b"): { $0 == UInt8(ascii: "0") || $0 == UInt8(ascii: "1") }
    default: nil
    }
  }

  private static func isDecimal(_ byte: UInt8) -> Bool { (UInt8(ascii: "0")...UInt8(ascii: "9")).contains(byte) }
}
