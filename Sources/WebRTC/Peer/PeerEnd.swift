/// The reason why a session with a peer has ended.
package enum PeerEnd: Hashable, Sendable, CustomStringConvertible {
  /// No check has come.
  case unreached
  /// The handshake of DTLS was not completed in time.
  case handshakeTime
  /// The handshake of DTLS has failed, with OpenSSL's reason.
  case handshake(String)
  /// The certificate of the peer is not that of its offer.
  case fingerprint
  /// The peer has agreed on no protection profile of SRTP.
  case noProtection
  /// No check has come for ``PeerSession/consentTime`` (RFC 7675).
  case consent
  /// The peer has said goodbye: `close_notify` of DTLS.
  case peer
  /// This side has ended the session: DELETE, or the stream has ended.
  case local
  /// The requester may not watch any more.
  case notAllowed
  /// This side could not begin to send, with the reason.
  case failure(String)

  /// A few words for the log.
  package var description: String {
    switch self {
    case .unreached: "no packet of the browser came: is the port blocked?"
    case .handshakeTime: "the DTLS handshake took too long"
    case .handshake(let reason): "the DTLS handshake failed: \(reason)"
    case .fingerprint: "the certificate of the browser is not that of its offer"
    case .noProtection: "the browser has no SRTP protection profile of ours"
    case .consent: "the browser is not heard any more"
    case .peer: "the browser has closed the connection"
    case .local: "ended"
    case .notAllowed: "its log-in may not watch any more"
    case .failure(let reason): reason
    }
  }
}
