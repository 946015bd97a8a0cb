public import Media

/// What one sender of one RTP stream remembers from packet to packet: RFC 3550 section 5.1.
///
/// A copy would repeat the original's sequence numbers; keep one.
public struct RTPStream: Sendable {
  /// Ticks a second of the RTP clock, for H.264 (RFC 6184 section 5.1) and MPEG-TS (RFC 2250 section 2) alike.
  public static let clockRate: Int64 = 90_000

  /// The payload's format.
  public let payloadType: RTPPayloadType
  /// The synchronization source.
  public private(set) var ssrc: UInt32
  /// What is added to a time's ticks, so that the first timestamp cannot be guessed.
  public let timestampOffset: UInt32
  /// The sequence number of the next packet.
  public private(set) var nextSequenceNumber: UInt16
  /// Packets made so far. A sender report carries the low 32 bits (RFC 3550 section 6.4.1).
  public private(set) var packetsSent: UInt64 = 0
  /// Payload bytes made so far, without headers, as a sender report counts them.
  public private(set) var octetsSent: UInt64 = 0

  /// A stream with the given initial values, for tests and for a stream that is continued.
  public init(
    payloadType: RTPPayloadType, ssrc: UInt32, firstSequenceNumber: UInt16, timestampOffset: UInt32
  ) {
    self.payloadType = payloadType
    self.ssrc = ssrc
    self.timestampOffset = timestampOffset
    nextSequenceNumber = firstSequenceNumber
  }

  /// A stream whose source, first sequence number and timestamp offset come from `generator`.
  public init(payloadType: RTPPayloadType, using generator: inout some RandomNumberGenerator) {
    self.init(
      payloadType: payloadType, ssrc: .random(in: 0 ... .max, using: &generator),
      firstSequenceNumber: .random(in: 0 ... .max, using: &generator),
      timestampOffset: .random(in: 0 ... .max, using: &generator))
  }

  /// A stream whose initial values come from the system's random numbers.
  public init(payloadType: RTPPayloadType) {
    var generator = SystemRandomNumberGenerator()
    self.init(payloadType: payloadType, using: &generator)
  }

  /// Goes on as another source from `firstSequenceNumber` on, with the same clock. The counts of sender reports begin anew
  /// (RFC 3550 section 6.4.1).
  package mutating func changeSource(to ssrc: UInt32, firstSequenceNumber: UInt16) {
    self.ssrc = ssrc
    nextSequenceNumber = firstSequenceNumber
    (packetsSent, octetsSent) = (0, 0)
  }

  /// The RTP timestamp of a time on the stream's timeline; a sender report needs it too.
  public func rtpTimestamp(of time: MediaTime) -> UInt32 {
    UInt32(truncatingIfNeeded: time.ticks(rate: Self.clockRate)) &+ timestampOffset
  }

  /// The header of the next packet, which has `payloadBytes` after it; counts it as sent.
  mutating func nextHeader(marker: Bool, timestamp: UInt32, payloadBytes: Int) -> RTPHeader {
    let header = RTPHeader(
      marker: marker, payloadType: payloadType, sequenceNumber: nextSequenceNumber, timestamp: timestamp, ssrc: ssrc)
    nextSequenceNumber &+= 1
    packetsSent &+= 1
    octetsSent &+= UInt64(truncatingIfNeeded: payloadBytes)
    return header
  }
}
