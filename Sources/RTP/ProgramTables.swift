/// The two tables that tell a receiver what a transport stream holds, each as one whole packet:
/// ISO/IEC 13818-1 sections 2.4.4.3 and 2.4.4.8.
enum ProgramTables {
  /// `stream_type` of H.264 video, table 2-34.
  private static let h264StreamType: UInt8 = 0x1b
  private static let transportStreamID: UInt16 = 1
  private static let programNumber: UInt16 = 1

  /// The packet with the PAT: one program.
  static let association = packet(
    pid: 0,
    section: section(
      tableID: 0, tableIDExtension: transportStreamID,
      body: bytes(programNumber) + bytes(0xe000 | TransportStreamMuxer.programMapPID)))

  /// The packet with the PMT: one H.264 stream that carries the program's clock.
  static let map = packet(
    pid: TransportStreamMuxer.programMapPID,
    section: section(
      tableID: 2, tableIDExtension: programNumber,
      body: bytes(0xe000 | TransportStreamMuxer.videoPID) + bytes(0xf000)
        + [h264StreamType] + bytes(0xe000 | TransportStreamMuxer.videoPID) + bytes(0xf000)))

  /// A section with its header and CRC.
  private static func section(tableID: UInt8, tableIDExtension: UInt16, body: [UInt8]) -> [UInt8] {
    // After the length: extension, version 0 and "current", section 0 of 0, body, CRC.
    let length = 5 + body.count + 4
    let start =
      [tableID] + bytes(0xb000 | UInt16(truncatingIfNeeded: length)) + bytes(tableIDExtension) + [0xc1, 0, 0] + body
    let sum = CRC32MPEG.checksum(start)
    return start + bytes(UInt16(truncatingIfNeeded: sum >> 16)) + bytes(UInt16(truncatingIfNeeded: sum))
  }

  /// A packet that begins with `section`, its continuity counter 0, the rest filled as section 2.4.4 says.
  private static func packet(pid: UInt16, section: [UInt8]) -> [UInt8] {
    let start = [TransportStreamMuxer.syncByte] + bytes(0x4000 | pid) + [0x10, 0] + section
    return start + [UInt8](repeating: 0xff, count: TransportStreamMuxer.packetBytes - start.count)
  }

  private static func bytes(_ value: UInt16) -> [UInt8] { [UInt8(value >> 8), UInt8(value & 0xff)] }
}
