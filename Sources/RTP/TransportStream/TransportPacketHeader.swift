/// The header of a transport packet, ISO/IEC 13818-1 section 2.4.3.2.
struct TransportPacketHeader {
  /// The packet identifier.
  let pid: UInt16
  /// `true` if a PES packet begins in the payload.
  let isStart: Bool
  /// The `adaptation_field_control`, in its place in the byte.
  let control: UInt8
  /// The continuity counter, four bits.
  let counter: UInt8

  /// Writes the header's four bytes.
  func write(to memory: UnsafeMutableRawPointer) {
    memory.storeBytes(of: TransportStreamMuxer.syncByte, as: UInt8.self)
    memory.storeBigEndian(pid | (isStart ? 0x4000 : 0), at: 1)
    memory.storeBytes(of: control | counter, toByteOffset: 3, as: UInt8.self)
  }
}
