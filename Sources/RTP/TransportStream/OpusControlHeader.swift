/// The header before each Opus packet in a PES packet: `opus_control_header()` of ETSI's draft "Opus Interactive Audio
/// Codec; Transport Multiplexing" 0.1.3, without trimming and extension.
struct OpusControlHeader {
  /// `control_header_prefix`, eleven bits 0x3FF, then five flags and reserved bits, all 0.
  private static let prefix: InlineArray<2, UInt8> = [0x7f, 0xe0]

  /// The number of bytes of the Opus packet.
  let packetBytes: Int

  /// The number of bytes of the header.
  var byteCount: Int { 2 + packetBytes / 255 + 1 }

  /// Writes the header. `au_size` is the sum of its bytes, of which the last one alone is less than 255.
  func write(with writer: inout PESWriter, into arena: inout ByteArena) {
    withUnsafeBytes(of: Self.prefix) { writer.write($0, into: &arena) }
    withUnsafeBytes(of: UInt8.max) { full in
      for _ in 0..<packetBytes / 255 { writer.write(full, into: &arena) }
    }
    withUnsafeBytes(of: UInt8(packetBytes % 255)) { writer.write($0, into: &arena) }
  }
}
