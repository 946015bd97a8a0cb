/// The CRC of PSI sections, ISO/IEC 13818-1 annex A: polynomial 04C11DB7, initially all ones, not reflected.
public enum CRC32MPEG {
  /// Returns the CRC of `bytes`; 0 for a section that ends with its own CRC.
  public static func checksum(_ bytes: some Sequence<UInt8>) -> UInt32 {
    var register: UInt32 = 0xffff_ffff
    for byte in bytes {
      register ^= UInt32(byte) << 24
      // Bit by bit: only two small sections per stream are summed, and a table would be larger.
      for _ in 0..<8 {
        register = register >> 31 == 1 ? (register << 1) ^ 0x04c1_1db7 : register << 1
      }
    }
    return register
  }
}
