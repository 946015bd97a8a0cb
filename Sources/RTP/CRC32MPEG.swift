/// The CRC of PSI sections, ISO/IEC 13818-1 annex A: polynomial 04C11DB7, all ones first, nothing reflected.
public enum CRC32MPEG {
  /// The CRC of `bytes`; over a section that ends with its own CRC it is 0.
  public static func checksum(_ bytes: some Sequence<UInt8>) -> UInt32 {
    var register: UInt32 = 0xffff_ffff
    for byte in bytes {
      register ^= UInt32(byte) << 24
      // Bit by bit: two small sections are summed once a stream, a table would only be larger.
      for _ in 0..<8 {
        register = register >> 31 == 1 ? (register << 1) ^ 0x04c1_1db7 : register << 1
      }
    }
    return register
  }
}
