import Media
import RTP

/// Linear PCM of 16 bits by RFC 3551 section 4.5.11, one channel at 48 kHz: a payload that the program does not have.
/// This folder is all that it needs.
struct L16PayloadFormat: PayloadFormat {
  static let clockRate: Int64 = 48_000
  static let payloadType: UInt8 = 98

  var name: String { "l16" }
  var title: String { "L16" }
  var keyFrameRule: KeyFrameRule { .everyUnit }
  var codec: VideoCodec? { nil }
  var takesParts: Bool { false }
  var players: PlayerSupport {
    PlayerSupport(gstreamerElements: "rtpL16depay", needsDescription: true, isReadEncryptedByFFmpeg: true)
  }

  func description(of track: TrackProperties) -> PayloadDescription {
    // 98 is less than 128.
    let type = RTPPayloadType(rawValue: Self.payloadType) ?? .h264
    return PayloadDescription(.audio, payloadType: type, encodingName: "L16", clockRate: Self.clockRate, channels: 1)
  }

  func makePacketizer(of stream: RTPStream, maximumPacketSize: Int) throws(PacketizerError) -> L16Packetizer {
    guard PacketSize.minimum...PacketSize.maximum ~= maximumPacketSize else {
      throw .packetSize(maximumPacketSize, limits: PacketSize.minimum...PacketSize.maximum)
    }
    return L16Packetizer(stream: stream, maximumPacketSize: maximumPacketSize)
  }
}

/// Cuts samples in network byte order, the one unit of an access unit, into packets of whole samples. Each packet's
/// timestamp is that of its first sample.
struct L16Packetizer: Packetizer {
  private(set) var stream: RTPStream
  let maximumPacketSize: Int

  mutating func changeSource(to ssrc: UInt32, firstSequenceNumber: UInt16) {
    stream.changeSource(to: ssrc, firstSequenceNumber: firstSequenceNumber)
  }

  mutating func packetize(_ unit: borrowing AccessUnit, into batch: PacketBatch) {
    let first = stream.rtpTimestamp(of: unit.timestamp)
    let largest = (maximumPacketSize - RTPHeader.byteCount) & ~1
    for samples in unit.nalUnits {
      var start = 0
      while start < samples.bytes.count {
        let payload = UnsafeRawBufferPointer(rebasing: samples.bytes[start...].prefix(largest))
        let memory = batch.append(headerBytes: RTPHeader.byteCount, lending: payload)
        stream.nextHeader(
          marker: false, timestamp: first &+ UInt32(start / 2), payloadBytes: payload.count
        ).write(to: memory)
        start += payload.count
      }
    }
  }
}
