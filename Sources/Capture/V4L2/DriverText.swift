/// Text from a driver or another process, made safe for a terminal.
package enum DriverText {
  /// The largest number of bytes read; the kernel's own fields have at most 32.
  package static let limit = 128

  /// Returns UTF-8 text up to the first zero byte, at most ``limit`` bytes. Control characters and broken UTF-8 become
  /// `?`; spaces at both ends are removed.
  ///
  /// A USB device chooses its own name: an escape sequence in it must not reach the terminal.
  package static func text(_ bytes: some Sequence<UInt8>) -> String {
    var kept: [UInt8] = []
    for byte in bytes.prefix(limit) {
      if byte == 0 { break }
      kept.append(byte)
    }
    var text = String.UnicodeScalarView()
    for scalar in String(decoding: kept, as: UTF8.self).unicodeScalars {
      text.append(isPrintable(scalar) ? scalar : "?")
    }
    while text.last == " " { text.removeLast() }
    return String(String.UnicodeScalarView(text.drop(while: { $0 == " " })))
  }

  /// Returns the text of one of the fixed arrays of a kernel structure, which Swift imports as a tuple.
  static func text<Tuple>(field: Tuple) -> String {
    withUnsafeBytes(of: field) { text($0) }
  }

  private static func isPrintable(_ scalar: Unicode.Scalar) -> Bool {
    switch scalar.properties.generalCategory {
    // Format characters can reverse the direction of the line; U+FFFD stands for broken UTF-8.
    case .control, .format, .surrogate, .privateUse, .unassigned, .lineSeparator, .paragraphSeparator: false
    default: scalar != "\u{FFFD}"
    }
  }
}
