/// The TXT record of a service instance (RFC 6763 section 6): strings, most of them `key=value`.
package struct TXTRecord: Hashable, Sendable {
  /// The size limit of a string in bytes (section 6.1).
  package static let stringLimit = 255

  /// The strings, unchanged: values may be any bytes (section 6.5).
  package var strings: [[UInt8]]

  /// Creates a record of these strings.
  package init(strings: [[UInt8]]) { self.strings = strings }

  /// Creates a record of these texts, in UTF-8.
  package init(_ texts: [String]) { strings = texts.map { Array($0.utf8) } }

  /// The strings as text; invalid UTF-8 becomes U+FFFD.
  package var texts: [String] { strings.map { String(decoding: $0, as: UTF8.self) } }

  /// Returns the value of `key`, an ASCII text whose case is ignored; nil where the record has no such key, or no value
  /// for it. Where a key occurs several times, the first one counts (section 6.4).
  package func value(of key: String) -> [UInt8]? {
    for string in strings {
      let end = string.firstIndex(of: UInt8(ascii: "=")) ?? string.endIndex
      guard string[..<end].lazy.map(Self.lowercased).elementsEqual(key.utf8.lazy.map(Self.lowercased)) else { continue }
      return end == string.endIndex ? nil : Array(string[(end + 1)...])
    }
    return nil
  }

  private static func lowercased(_ byte: UInt8) -> UInt8 {
    (UInt8(ascii: "A")...UInt8(ascii: "Z")).contains(byte) ? byte | 0x20 : byte
  }
}
