/// The header of a PES packet with a PTS and without a DTS, ISO/IEC 13818-1 section 2.4.3.6. An access unit begins
/// right after it.
struct PESHeader {
  /// The number of bytes of the header.
  static let byteCount = 14
  /// The number of data bytes that `PES_packet_length` can express.
  static let dataLimit = 0xffff - (byteCount - 6)

  /// The `stream_id`.
  let streamID: UInt8
  /// The number of bytes after the header, at most ``dataLimit``; `nil` leaves it open, which video alone may.
  let dataBytes: Int?
  /// The PTS in ticks of 90 kHz, 33 bits.
  let timestamp: UInt64

  /// The header's bytes.
  var bytes: InlineArray<14, UInt8> {
    let length = dataBytes.map { UInt16(truncatingIfNeeded: $0 + Self.byteCount - 6) } ?? 0
    return [
      0, 0, 1, streamID, UInt8(length >> 8), UInt8(length & 0xff),
      // Data alignment; a PTS alone; five more bytes.
      0x84, 0x80, 5,
      0x21 | UInt8(truncatingIfNeeded: timestamp >> 29) & 0x0e,
      UInt8(truncatingIfNeeded: timestamp >> 22),
      UInt8(truncatingIfNeeded: timestamp >> 14) | 1,
      UInt8(truncatingIfNeeded: timestamp >> 7),
      UInt8(truncatingIfNeeded: timestamp << 1) | 1,
    ]
  }
}
