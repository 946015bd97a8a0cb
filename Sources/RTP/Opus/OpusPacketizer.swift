public import Media

/// A packetizer that sends Opus packets by RFC 7587, each as the payload of one RTP packet (section 4.2).
///
/// - The first unit of an access unit is the Opus packet. The batch lends its bytes.
/// - The timestamp counts samples of 48 kHz, whatever the sampling rate of the encoder is (section 4.1).
/// - The marker bit is 0, because the encoder does not pause in silence (RFC 3551 section 4.1).
/// - The packetizer omits an Opus packet that is larger than an RTP packet, because the format has no fragments. One
///   frame of Opus has at most 1275 bytes (RFC 6716 section 3.2.1); at 20 ms and 128 kbit/s it has about 320.
public struct OpusPacketizer: Sendable {
  /// The permitted packet sizes.
  public static let packetSizeLimits = PacketSize.minimum...PacketSize.maximum
  /// The RTP clock rate in ticks per second, RFC 7587 section 4.1.
  public static let clockRate: Int64 = 48_000

  /// The stream's sequence numbers and counts.
  public private(set) var stream: RTPStream
  /// The maximum size of a packet in bytes, RTP header included.
  public let maximumPacketSize: Int
  /// The number of Opus packets that were larger than an RTP packet.
  public private(set) var packetsOmitted: UInt64 = 0

  /// Creates a packetizer of `stream` that makes packets of at most `maximumPacketSize` bytes.
  ///
  /// - Throws: ``PacketizerError`` for a packet size outside ``packetSizeLimits``.
  public init(
    stream: RTPStream = RTPStream(payloadType: .opus, clockRate: OpusPacketizer.clockRate),
    maximumPacketSize: Int = PacketSize.standard
  ) throws(PacketizerError) {
    self.stream = stream
    self.maximumPacketSize = try PacketSize.checked(maximumPacketSize, Self.packetSizeLimits)
  }

  /// Continues as another source; see ``RTPStream``.
  package mutating func changeSource(to ssrc: UInt32, firstSequenceNumber: UInt16) {
    stream.changeSource(to: ssrc, firstSequenceNumber: firstSequenceNumber)
  }

  /// Appends the packet of `unit` to `batch`, which borrows the unit's bytes.
  public mutating func packetize(_ unit: borrowing AccessUnit, into batch: PacketBatch) {
    guard let payload = unit.nalUnits.first?.bytes else { return }
    guard payload.count <= maximumPacketSize - RTPHeader.byteCount else {
      packetsOmitted &+= 1
      return
    }
    let timestamp = stream.rtpTimestamp(of: unit.timestamp)
    let memory = batch.append(headerBytes: RTPHeader.byteCount, lending: payload)
    stream.nextHeader(marker: false, timestamp: timestamp, payloadBytes: payload.count).write(to: memory)
  }
}
