package import Platform

/// The reason why a datagram is no STUN message.
package enum STUNError: Failure, Hashable {
  /// A datagram of more bytes than the limit.
  case length(Int, limit: Int)
  /// A datagram without the header of RFC 8489.
  case noMessage
  /// A length field that differs from the length of the datagram.
  case lengthField(Int, bytes: Int)
  /// More attributes than the limit.
  case attributes(limit: Int)
  /// An attribute that does not end, or whose value has a wrong size.
  case attribute(offset: Int)
  /// A FINGERPRINT that is not the message's.
  case fingerprint

  /// A one-line description for the log.
  package var description: String {
    switch self {
    case .length(let count, let limit): "a STUN message of \(count) bytes: at most \(limit) are read"
    case .noMessage: "a datagram that is no STUN message"
    case .lengthField(let length, let bytes): "a STUN message of \(bytes) bytes that claims \(length) after its header"
    case .attributes(let limit): "a STUN message of more than \(limit) attributes"
    case .attribute(let offset): "a malformed STUN attribute at byte \(offset)"
    case .fingerprint: "a STUN message with another message's FINGERPRINT"
    }
  }

  /// The kind of failure.
  package var kind: FailureKind { .data }
}
