package import Platform

/// The reason why an offer gets no answer.
package enum OfferError: Failure, Hashable {
  /// An offer of more bytes than the limit.
  case length(Int, limit: Int)
  /// A line of more bytes than the limit.
  case line(Int, limit: Int)
  /// More `m=` lines than the limit.
  case media(limit: Int)
  /// More payload types in an `m=` line than the limit.
  case payloadTypes(line: Int, limit: Int)
  /// A line that RFC 8866 does not allow.
  case malformed(line: Int)
  /// A text that is no session description.
  case noDescription
  /// No `m=` line.
  case noMedia
  /// Two media with the same `mid`.
  case repeatedIdentifier
  /// No medium that takes pictures or sound.
  case nothingToSend
  /// `a=ice-ufrag` or `a=ice-pwd` is missing, or breaks the rules of RFC 8839.
  case noCredentials
  /// A peer that sends no connectivity checks.
  case lite
  /// No `a=fingerprint` of a hash function that is supported.
  case noFingerprint
  /// A peer that wants to be the server of DTLS.
  case setup
  /// A medium without `a=rtcp-mux`.
  case noMultiplexing
  /// No codec of the stream among those of the offer.
  case noCodec(stream: String, offered: [String])

  /// A one-line description for the client.
  package var description: String {
    switch self {
    case .length(let count, let limit): "an offer of \(count) bytes: at most \(limit) are read"
    case .line(let number, let limit): "line \(number) of the offer has more than \(limit) bytes"
    case .media(let limit): "an offer of more than \(limit) media; offer one of pictures and one of sound"
    case .payloadTypes(let number, let limit): "line \(number) of the offer has more than \(limit) payload types"
    case .malformed(let number): "line \(number) of the offer is malformed"
    case .noDescription: "the offer is no session description (SDP): its first line is not v=0"
    case .noMedia: "an offer without media; add a transceiver of direction recvonly"
    case .repeatedIdentifier: "an offer with the same a=mid twice"
    case .nothingToSend: "no medium of the offer receives pictures or sound; add a transceiver of direction recvonly"
    case .noCredentials: "an offer without valid a=ice-ufrag and a=ice-pwd"
    case .lite: "an offer of an ICE-lite peer: one side must send connectivity checks"
    case .noFingerprint: "an offer without a=fingerprint:sha-256"
    case .setup: "an offer with a=setup other than actpass or active: this side is the server of DTLS"
    case .noMultiplexing: "an offer without a=rtcp-mux"
    case .noCodec(let stream, let offered):
      "the stream is \(stream), and the offer has "
        + (offered.isEmpty ? "no codec" : offered.prefix(12).joined(separator: ", "))
    }
  }

  /// The kind of failure.
  package var kind: FailureKind {
    switch self {
    case .noCodec: .unavailable
    default: .data
    }
  }
}
