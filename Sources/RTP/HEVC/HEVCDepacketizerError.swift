public import Platform

/// The reason why an RTP packet with HEVC was refused.
public enum HEVCDepacketizerError: Failure, Hashable {
  /// The bytes are no RTP packet.
  case packet(RTPPacketError)
  /// The packet has another payload type.
  case payloadType(RTPPayloadType, expected: RTPPayloadType)
  /// The packet has no payload.
  case empty
  /// The payload's header is cut off, or has an impossible value.
  case header(payload: Int)
  /// A PACI packet (50), a type that RFC 7798 does not use (51…63), or a structure nested in another.
  case structure(UInt8)
  /// An aggregation packet whose NAL unit at `offset` is too short or ends after the payload.
  case aggregate(offset: Int, payload: Int)
  /// A fragmentation unit without its FU header, or with an impossible one.
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
    case .empty: "an RTP packet without HEVC in it"
    case .header(let payload): "an RTP payload of \(payload) bytes without a header of HEVC"
    case .structure(let type):
      "an RTP payload structure of type \(type): NAL units, aggregation packets and fragmentation units are taken (0…49)"
    case .aggregate(let offset, let payload):
      "a broken aggregation packet: the NAL unit at byte \(offset) does not fit the payload of \(payload)"
    case .fragment(let header, let payload):
      "a broken fragmentation unit of \(payload) bytes: FU header \(header)"
    case .nalUnitSize(let limit): "a NAL unit of more than \(limit) bytes; raise the limit if it is meant"
    case .accessUnitSize(let limit): "an access unit of more than \(limit) bytes; raise the limit if it is meant"
    case .nalUnits(let limit): "an access unit of more than \(limit) NAL units; raise the limit if it is meant"
    }
  }

  /// The kind of failure.
  public var kind: FailureKind { .data }
}
