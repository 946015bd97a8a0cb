public import Platform

/// The reason why a datagram, or one packet in it, is no valid RTCP.
public enum RTCPError: Failure, Hashable {
  /// More bytes than the limit.
  case size(Int, limit: Int)
  /// More packets in one datagram than the limit.
  case packets(limit: Int)
  /// Fewer bytes than a header, at `offset`.
  case short(Int, offset: Int)
  /// A version other than 2, at `offset`.
  case version(UInt8, offset: Int)
  /// A packet whose length field reaches beyond the datagram.
  case length(Int, available: Int)
  /// Padding on a packet that is not the last, or an invalid padding count.
  case padding(Int, available: Int)
  /// A compound packet that begins with neither a sender nor a receiver report, RFC 3550 section 6.1.
  case firstPacket(UInt8)
  /// A packet of a known type whose body is too short for the counts in its header.
  case body(type: UInt8, needed: Int, available: Int)
  /// Source descriptions whose items or chunks do not end within the packet.
  case sourceDescription(offset: Int)
  /// A BYE whose reason is longer than the packet.
  case reason(Int, available: Int)

  /// A one-line description for the person at the terminal.
  public var description: String {
    switch self {
    case .size(let size, let limit): "an RTCP datagram of \(size) bytes: at most \(limit) are looked at"
    case .packets(let limit): "an RTCP datagram of more than \(limit) packets; split it"
    case .short(let count, let offset):
      "\(count) bytes of RTCP at byte \(offset): a header alone has 4; is it really RTCP?"
    case .version(let version, let offset):
      "an RTCP packet of version \(version) at byte \(offset) instead of \(RTPHeader.version); is it really RTCP?"
    case .length(let length, let available):
      "an RTCP packet of \(length) bytes in the \(available) that are left; it was cut short"
    case .padding(let padding, let available):
      "an RTCP packet with \(padding) bytes of padding in \(available): a multiple of 4, in the last packet only"
    case .firstPacket(let type):
      "a compound RTCP packet that begins with type \(type) instead of 200 or 201; negotiate reduced size for that"
    case .body(let type, let needed, let available):
      "an RTCP packet of type \(type) with \(available) bytes of body instead of \(needed)"
    case .sourceDescription(let offset): "an RTCP source description that does not end, at byte \(offset)"
    case .reason(let length, let available): "an RTCP BYE whose reason has \(length) bytes in \(available)"
    }
  }

  /// The kind of failure.
  public var kind: FailureKind { .data }
}
