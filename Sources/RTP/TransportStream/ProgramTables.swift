import Media

/// The two tables that describe the contents of a transport stream, each in one complete packet: ISO/IEC 13818-1
/// sections 2.4.4.3 and 2.4.4.8.
enum ProgramTables {
  /// Returns the `stream_type` of video, table 2-34.
  private static func streamType(of codec: VideoCodec) -> UInt8 {
    switch codec {
    case .h264: 0x1b
    case .hevc: 0x24
    }
  }
  /// The `stream_type` of PES packets with private data, table 2-34. A registration tells what they are.
  private static let privateStreamType: UInt8 = 0x06
  private static let transportStreamID: UInt16 = 1
  private static let programNumber: UInt16 = 1

  /// The packet with the PAT: one program.
  static let association = packet(
    pid: 0,
    section: section(
      tableID: 0, tableIDExtension: transportStreamID,
      body: bytes(programNumber) + bytes(0xe000 | TransportStreamMuxer.programMapPID)))

  /// Returns the packet with the PMT: one video stream of `codec` that carries the program clock, and the Opus stream of `sound`
  /// if that is not `nil`.
  static func map(codec: VideoCodec, sound: OpusChannels?) -> [UInt8] {
    let video = elementaryStream(
      streamType(of: codec), pid: TransportStreamMuxer.videoPID, descriptors: descriptors(of: codec))
    let other = sound.map {
      elementaryStream(privateStreamType, pid: TransportStreamMuxer.soundPID, descriptors: descriptors(of: $0))
    }
    return packet(
      pid: TransportStreamMuxer.programMapPID,
      section: section(
        tableID: 2, tableIDExtension: programNumber,
        body: bytes(0xe000 | TransportStreamMuxer.videoPID) + bytes(0xf000) + video + (other ?? [])))
  }

  /// Returns the descriptors of the video: a registration of HEVC (section 2.6.8), as ffmpeg writes it.
  private static func descriptors(of codec: VideoCodec) -> [UInt8] {
    switch codec {
    case .h264: []
    case .hevc: [0x05, 4] + Array("HEVC".utf8)
    }
  }

  /// Returns the descriptors of Opus: a registration (section 2.6.8), and a DVB extension descriptor (ETSI EN 300 468
  /// section 6.2.16) with the `channel_config_code`, as ETSI's draft "Opus Interactive Audio Codec; Transport
  /// Multiplexing" 0.1.3 says.
  private static func descriptors(of sound: OpusChannels) -> [UInt8] {
    let format = Array("Opus".utf8)
    let configuration = [0x80, UInt8(truncatingIfNeeded: sound.rawValue)]
    return [0x05, UInt8(truncatingIfNeeded: format.count)] + format
      + [0x7f, UInt8(truncatingIfNeeded: configuration.count)] + configuration
  }

  private static func elementaryStream(_ type: UInt8, pid: UInt16, descriptors: [UInt8]) -> [UInt8] {
    [type] + bytes(0xe000 | pid) + bytes(0xf000 | UInt16(truncatingIfNeeded: descriptors.count)) + descriptors
  }

  /// Returns a section with its header and CRC.
  private static func section(tableID: UInt8, tableIDExtension: UInt16, body: [UInt8]) -> [UInt8] {
    // After the length: extension, version 0 and "current", section 0 of 0, body, CRC.
    let length = 5 + body.count + 4
    let start =
      [tableID] + bytes(0xb000 | UInt16(truncatingIfNeeded: length)) + bytes(tableIDExtension) + [0xc1, 0, 0] + body
    let sum = CRC32MPEG.checksum(start)
    return start + bytes(UInt16(truncatingIfNeeded: sum >> 16)) + bytes(UInt16(truncatingIfNeeded: sum))
  }

  /// Returns a packet that begins with `section`, with continuity counter 0 and stuffing by section 2.4.4.
  private static func packet(pid: UInt16, section: [UInt8]) -> [UInt8] {
    let start = [TransportStreamMuxer.syncByte] + bytes(0x4000 | pid) + [0x10, 0] + section
    return start + [UInt8](repeating: 0xff, count: TransportStreamMuxer.packetBytes - start.count)
  }

  private static func bytes(_ value: UInt16) -> [UInt8] { [UInt8(value >> 8), UInt8(value & 0xff)] }
}
