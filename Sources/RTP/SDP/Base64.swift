/// Base64 by RFC 4648 section 4, the format of `sprop-parameter-sets` and keys.
public enum Base64 {
  /// Returns `bytes` as base64 text with padding and without line breaks.
  public static func encode(_ bytes: [UInt8]) -> String {
    let alphabet = Array("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/".utf8)
    var text: [UInt8] = []
    text.reserveCapacity((bytes.count + 2) / 3 * 4)
    for start in stride(from: 0, to: bytes.count, by: 3) {
      let group = bytes[start..<min(start + 3, bytes.count)]
      var bits: UInt32 = 0
      for byte in group { bits = bits << 8 | UInt32(byte) }
      bits <<= UInt32(8 * (3 - group.count))
      for position in 0..<4 {
        // n bytes need n + 1 characters.
        let sextet = Int(bits >> UInt32(18 - 6 * position)) & 63
        text.append(position <= group.count ? alphabet[sextet] : UInt8(ascii: "="))
      }
    }
    return String(decoding: text, as: UTF8.self)
  }

  /// Returns the bytes of a text whose padding may be missing. Returns `nil` for invalid text, and for nonzero bits
  /// beyond the last byte.
  public static func decode(_ text: some Collection<UInt8>) -> [UInt8]? {
    var digits = Array(text)
    let length = digits.count
    while digits.last == 0x3d { digits.removeLast() }
    guard length == digits.count || length.isMultiple(of: 4), length - digits.count <= 2, digits.count % 4 != 1 else {
      return nil
    }
    var bytes: [UInt8] = []
    var bits: UInt32 = 0
    var count = 0
    for digit in digits {
      let value: UInt8
      switch digit {
      case 0x41...0x5a: value = digit - 0x41
      case 0x61...0x7a: value = digit - 0x61 + 26
      case 0x30...0x39: value = digit - 0x30 + 52
      case 0x2b: value = 62
      case 0x2f: value = 63
      default: return nil
      }
      bits = bits << 6 | UInt32(value)
      count += 6
      guard count >= 8 else { continue }
      count -= 8
      bytes.append(UInt8(truncatingIfNeeded: bits >> UInt32(count)))
      bits &= 1 << UInt32(count) - 1
    }
    return bits == 0 ? bytes : nil
  }
}
