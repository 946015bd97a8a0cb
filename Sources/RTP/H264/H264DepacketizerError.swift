public import Platform

/// The reason why an RTP packet with H.264 was refused.
public enum H264DepacketizerError: Failure, Hashable {
  /// The bytes are no RTP packet.
  case packet(RTPPacketError)
  /// The packet has another payload type.
  case payloadType(RTPPayloadType, expected: RTPPayloadType)
  /// The packet has no payload.
  case empty
  /// A structure of interleaved mode (STAP-B 25, MTAP 26 and 27, FU-B 29), a reserved type (0, 30, 31), or one of
  /// these nested in another.
  case structure(UInt8)
  /// A STAP-A whose NAL unit at `offset` is empty or ends after the payload.
  case aggregate(offset: Int, payload: Int)
  /// An FU-A without its two header bytes, or with an impossible FU header.
  case fragment(header: UInt8, payload: Int)
  /// A NAL unit beyond the limit.
  case nalUnitSize(limit: Int)
  /// An access unit beyond the limit.
  case accessUnitSize(limit: Int)
  /// An access unit with too many NAL units.
  case nalUnits(limit: Int)

  /// A one-line description for the person at the terminal.
  public var description: String {
    switch self {
    case .packet(let error): error.description
    case .payloadType(let type, let expected):
      "an RTP packet of payload type \(type) instead of \(expected); does the SDP belong to this stream?"
    case .empty: "an RTP packet without H.264 in it"
    case .structure(let type):
      "an RTP payload structure of type \(type): only packetization-mode 0 and 1 are taken (1…23, 24 and 28)"
    case .aggregate(let offset, let payload):
      "a broken STAP-A: the NAL unit at byte \(offset) does not fit the payload of \(payload)"
    case .fragment(let header, let payload):
      "a broken FU-A of \(payload) bytes: FU header \(header)"
    case .nalUnitSize(let limit): "a NAL unit of more than \(limit) bytes; raise the limit if it is meant"
    case .accessUnitSize(let limit): "an access unit of more than \(limit) bytes; raise the limit if it is meant"
    case .nalUnits(let limit): "an access unit of more than \(limit) NAL units; raise the limit if it is meant"
    }
  }

  /// The kind of failure.
  public var kind: FailureKind { .data }
}
