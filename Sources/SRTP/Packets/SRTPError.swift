package import Platform

/// The reason why a packet was not protected, or was refused.
package enum SRTPError: Failure, Hashable {
  /// The packet is shorter than any protected packet.
  case tooShort(Int)
  /// The packet's tag is wrong: it is forged, damaged, unencrypted, or under another key.
  case forged
  /// The packet is a replay, or too old to be checked for replay (RFC 3711 section 3.3.2).
  case replayed
  /// The packet has our own source: a peer reflected a packet of ours.
  case reflected
  /// The packet's source exceeds the limit of a viewer or a group. The library keeps state for each source forever.
  case tooManySources(limit: Int)
  /// The key has protected the maximum number of packets (RFC 3711 section 9.2).
  case keyUsedUp
  /// Another failure of the library, with its status.
  case library(UInt32)

  /// A one-line description.
  package var description: String {
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

  /// The kind of failure.
  package var kind: FailureKind {
    switch self {
    case .keyUsedUp: .unavailable
    case .library: .software
    default: .data
    }
  }
}
