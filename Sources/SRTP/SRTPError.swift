public import Media

/// Why a packet was not protected, or is not taken.
public enum SRTPError: Failure, Hashable {
  /// It is shorter than a protected packet can be.
  case tooShort(Int)
  /// It does not have the tag that its sender would have made: forged, damaged, in the clear, or of another key.
  case forged
  /// It came before, or is so old that this cannot be told (RFC 3711 section 3.3.2).
  case replayed
  /// It bears our own source: what we have sent ourselves and somebody sends back.
  case reflected
  /// It bears one source more than a viewer or a group may have: the library keeps something for each, for ever.
  case tooManySources(limit: Int)
  /// The key has protected as many packets as it may (RFC 3711 section 9.2).
  case keyUsedUp
  /// The library failed otherwise, with its status.
  case library(UInt32)

  /// One line.
  public var description: String {
    switch self {
    case .tooShort(let count): "\(count) bytes are too few for a protected packet: is the sender without SRTP?"
    case .forged: "the authentication tag is wrong: another key, no SRTP, or a forgery"
    case .replayed: "the packet came before, or is too old to tell"
    case .reflected: "the packet is our own, sent back"
    case .tooManySources(let limit): "the packet is of one source more than the \(limit) that are listened to"
    case .keyUsedUp: "the key has protected all the packets that it may: start again with a new one"
    case .library(let status): "libsrtp2 failed with status \(status)"
    }
  }

  /// What kind of failure it is.
  public var kind: FailureKind {
    switch self {
    case .keyUsedUp: .unavailable
    case .library: .software
    default: .data
    }
  }
}
