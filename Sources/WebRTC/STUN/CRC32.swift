/// The checksum of STUN's FINGERPRINT (RFC 8489 section 14.7): the CRC-32 of ITU-T V.42.
package enum CRC32 {
  private static let table: InlineArray<256, UInt32> = {
    var table = InlineArray<256, UInt32>(repeating: 0)
    for index in 0..<256 {
      var value = UInt32(index)
      for _ in 0..<8 { value = value & 1 == 1 ? 0xedb8_8320 ^ value >> 1 : value >> 1 }
      table[index] = value
    }
    return table
  }()

  /// Returns the checksum of `bytes`.
  package static func checksum(of bytes: some Sequence<UInt8>) -> UInt32 {
    var value = UInt32.max
    for byte in bytes { value = table[Int((value ^ UInt32(byte)) & 0xff)] ^ value >> 8 }
    return ~value
  }
}
