/// The TXT record of a service instance (RFC 6763 section 6): strings, most of them `key=value`.
public struct TXTRecord: Hashable, Sendable {
  /// The most bytes of a string (section 6.1).
  public static let stringLimit = 255

  /// Its strings, as they came: values may be any bytes (section 6.5).
  public var strings: [[UInt8]]

  /// One of these strings.
  public init(strings: [[UInt8]]) { self.strings = strings }

  /// One of these texts, in UTF-8.
  public init(_ texts: [String]) { strings = texts.map { Array($0.utf8) } }

  /// Its strings for people and programs to read; what is no UTF-8 becomes U+FFFD.
  public var texts: [String] { strings.map { String(decoding: $0, as: UTF8.self) } }

  /// The value of `key`, which is ASCII and found whatever its case; nil where the record has no such key, or no value for
  /// it. Of several of one key the first counts (section 6.4).
  public func value(of key: String) -> [UInt8]? {
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
