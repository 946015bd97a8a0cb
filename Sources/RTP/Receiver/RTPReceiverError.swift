public import Platform

/// The reason why a receiver refused a datagram as a whole. All other faults are only counted.
public enum RTPReceiverError: Failure, Hashable {
  /// The datagram is no RTP packet.
  case packet(RTPPacketError)
  /// The datagram is no RTCP.
  case control(RTCPError)
  /// A datagram on a shared port that is neither RTP nor RTCP.
  case unknown(bytes: Int)
  /// The packet has another payload type.
  case payloadType(RTPPayloadType, expected: RTPPayloadType)
  /// The packet comes from another source than the expected one.
  case source(UInt32, expected: UInt32)
  /// The packet is larger than the receiver's limit.
  case size(Int, limit: Int)

  /// A one-line description for the person at the terminal.
  public var description: String {
    switch self {
    case .packet(let error): error.description
    case .control(let error): error.description
    case .unknown(let bytes): "a datagram of \(bytes) bytes that is neither RTP nor RTCP"
    case .payloadType(let type, let expected):
      "an RTP packet of payload type \(type) instead of \(expected); does the SDP belong to this stream?"
    case .source(let ssrc, let expected): "an RTP packet of source \(ssrc) instead of \(expected)"
    case .size(let size, let limit): "an RTP packet of \(size) bytes: at most \(limit) are taken; raise the limit"
    }
  }

  /// The kind of failure.
  public var kind: FailureKind { .data }
}
