import FoundationEssentials

/// Base64 for URLs (RFC 4648 section 5), without padding.
package enum Base64URL {
  /// Returns the text of `bytes`.
  package static func text(_ bytes: [UInt8]) -> String {
    let text = Data(bytes).base64EncodedString().utf8.compactMap { byte -> UInt8? in
      switch byte {
      case UInt8(ascii: "+"): UInt8(ascii: "-")
      case UInt8(ascii: "/"): UInt8(ascii: "_")
      case UInt8(ascii: "="): nil
      default: byte
      }
    }
    return String(decoding: text, as: UTF8.self)
  }

  /// Returns the bytes of a text; nil for one with other characters. Padding is allowed, as some browsers write it.
  package static func bytes(_ text: String) -> [UInt8]? {
    var characters: [UInt8] = []
    for byte in text.utf8 {
      switch byte {
      case UInt8(ascii: "-"): characters.append(UInt8(ascii: "+"))
      case UInt8(ascii: "_"): characters.append(UInt8(ascii: "/"))
      case UInt8(ascii: "+"), UInt8(ascii: "/"): return nil
      default: characters.append(byte)
      }
    }
    while characters.last == UInt8(ascii: "=") { characters.removeLast() }
    while characters.count % 4 != 0 { characters.append(UInt8(ascii: "=")) }
    return Data(base64Encoded: Data(characters)).map { Array($0) }
  }
}
