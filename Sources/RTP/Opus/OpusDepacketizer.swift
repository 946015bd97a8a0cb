public import Platform

/// A depacketizer of Opus, RFC 7587 section 4.2: the payload of each RTP packet is one Opus packet.
///
/// A gap in the sequence numbers damages no neighbor. The next packet's timestamp says how much sound is missing, whether
/// packets were lost or the sender paused in silence (section 3.1.3).
public struct OpusDepacketizer: Sendable {
  /// The accepted payload type.
  public let payloadType: RTPPayloadType
  /// The number of accepted packets.
  public private(set) var packetsReceived: UInt64 = 0

  /// Creates a depacketizer for packets of `payloadType`.
  public init(payloadType: RTPPayloadType = .opus) { self.payloadType = payloadType }

  /// Takes one RTP packet, and lends its Opus packet to `deliver` as an access unit of one part.
  ///
  /// - Throws: ``OpusDepacketizerError`` for a packet that is refused. The next one can follow as usual.
  public mutating func receive(
    _ packet: UnsafeRawBufferPointer, deliver: (borrowing ReceivedAccessUnit) -> Void
  ) throws(OpusDepacketizerError) {
    let parsed: RTPPacket
    do throws(RTPPacketError) { parsed = try RTPPacket(parsing: packet) } catch { throw .packet(error) }
    guard parsed.header.payloadType == payloadType else {
      throw .payloadType(parsed.header.payloadType, expected: payloadType)
    }
    do throws(OpusPacketError) { _ = try OpusPacket(parsing: parsed.payload) } catch { throw .opus(error) }
    packetsReceived &+= 1
    withUnsafePointer(to: 0..<parsed.payload.count) { range in
      deliver(
        ReceivedAccessUnit(
          sound: parsed.payload, ranges: UnsafeBufferPointer(start: range, count: 1), timestamp: parsed.header.timestamp
        ))
    }
  }
}

/// The reason why a packet of sound was refused.
public enum OpusDepacketizerError: Failure, Hashable {
  /// The bytes are no RTP packet.
  case packet(RTPPacketError)
  /// The packet has another payload type.
  case payloadType(RTPPayloadType, expected: RTPPayloadType)
  /// The payload is no Opus packet.
  case opus(OpusPacketError)

  /// A one-line description for the person at the terminal.
  public var description: String {
    switch self {
    case .packet(let error): error.description
    case .payloadType(let type, let expected):
      "an RTP packet of payload type \(type) instead of \(expected); does the SDP belong to this stream?"
    case .opus(let error): error.description
    }
  }

  /// The kind of failure.
  public var kind: FailureKind { .data }
}
