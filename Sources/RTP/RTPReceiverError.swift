public import Media

/// Why a receiver refused a datagram as a whole; everything else it only counts.
public enum RTPReceiverError: Failure, Hashable {
  /// It is no RTP packet.
  case packet(RTPPacketError)
  /// It is no RTCP.
  case control(RTCPError)
  /// On a shared port, neither RTP nor RTCP.
  case unknown(bytes: Int)
  /// It carries something else.
  case payloadType(RTPPayloadType, expected: RTPPayloadType)
  /// It comes from another source than the one that was asked for.
  case source(UInt32, expected: UInt32)
  /// It is larger than what the receiver has room for.
  case size(Int, limit: Int)

  /// One line for the person at the terminal.
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

  /// What kind of failure it is.
  public var kind: FailureKind { .data }
}
