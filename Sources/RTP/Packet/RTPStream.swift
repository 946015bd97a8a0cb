public import Platform

/// The state that the sender of one RTP stream keeps from packet to packet: RFC 3550 section 5.1.
///
/// Do not copy a stream: a copy would repeat the original's sequence numbers.
public struct RTPStream: Sendable {
  /// The RTP clock rate of pictures in ticks per second, both for H.264 (RFC 6184 section 5.1) and for MPEG-TS
  /// (RFC 2250 section 2).
  public static let videoClockRate: Int64 = 90_000

  /// The payload type.
  public let payloadType: RTPPayloadType
  /// The RTP clock rate in ticks per second.
  public let clockRate: Int64
  /// The synchronization source.
  public private(set) var ssrc: UInt32
  /// The random offset added to a time's ticks, so that the first timestamp cannot be guessed.
  public let timestampOffset: UInt32
  /// The sequence number of the next packet.
  public private(set) var nextSequenceNumber: UInt16
  /// The number of packets made so far. A sender report carries the low 32 bits (RFC 3550 section 6.4.1).
  public private(set) var packetsSent: UInt64 = 0
  /// The number of payload bytes made so far, without headers, as a sender report counts them.
  public private(set) var octetsSent: UInt64 = 0

  /// Creates a stream with the given initial values, for tests and for a stream that continues.
  public init(
    payloadType: RTPPayloadType, clockRate: Int64 = RTPStream.videoClockRate, ssrc: UInt32, firstSequenceNumber: UInt16,
    timestampOffset: UInt32
  ) {
    self.payloadType = payloadType
    self.clockRate = clockRate
    self.ssrc = ssrc
    self.timestampOffset = timestampOffset
    nextSequenceNumber = firstSequenceNumber
  }

  /// Creates a stream whose source, first sequence number and timestamp offset come from `generator`.
  public init(
    payloadType: RTPPayloadType, clockRate: Int64 = RTPStream.videoClockRate,
    using generator: inout some RandomNumberGenerator
  ) {
    self.init(
      payloadType: payloadType, clockRate: clockRate, ssrc: .random(in: 0 ... .max, using: &generator),
      firstSequenceNumber: .random(in: 0 ... .max, using: &generator),
      timestampOffset: .random(in: 0 ... .max, using: &generator))
  }

  /// Creates a stream of a source that was told before, or of a random one, for receivers of SRTP: the first sequence
  /// number is in the lower half, so that a receiver that loses the first packets does not miss a wrap (RFC 3711
  /// section 3.3.1).
  package init(protected payloadType: RTPPayloadType, clockRate: Int64, ssrc: UInt32?) {
    self.init(
      payloadType: payloadType, clockRate: clockRate, ssrc: ssrc ?? .random(in: 0 ... .max),
      firstSequenceNumber: .random(in: 0..<0x8000), timestampOffset: .random(in: 0 ... .max))
  }

  /// Creates a stream whose initial values come from the system's random numbers.
  public init(payloadType: RTPPayloadType, clockRate: Int64 = RTPStream.videoClockRate) {
    var generator = SystemRandomNumberGenerator()
    self.init(payloadType: payloadType, clockRate: clockRate, using: &generator)
  }

  /// Continues as another source from `firstSequenceNumber` on, with the same clock. The counts of sender reports
  /// restart (RFC 3550 section 6.4.1).
  package mutating func changeSource(to ssrc: UInt32, firstSequenceNumber: UInt16) {
    self.ssrc = ssrc
    nextSequenceNumber = firstSequenceNumber
    (packetsSent, octetsSent) = (0, 0)
  }

  /// Returns the RTP timestamp of a time on the stream's timeline; a sender report needs it too.
  public func rtpTimestamp(of time: Instant) -> UInt32 {
    UInt32(truncatingIfNeeded: time.ticks(rate: clockRate)) &+ timestampOffset
  }

  /// Returns the header of the next packet with a payload of `payloadBytes`, and counts the packet as sent.
  package mutating func nextHeader(marker: Bool, timestamp: UInt32, payloadBytes: Int) -> RTPHeader {
    let header = RTPHeader(
      marker: marker, payloadType: payloadType, sequenceNumber: nextSequenceNumber, timestamp: timestamp, ssrc: ssrc)
    nextSequenceNumber &+= 1
    packetsSent &+= 1
    octetsSent &+= UInt64(truncatingIfNeeded: payloadBytes)
    return header
  }
}
