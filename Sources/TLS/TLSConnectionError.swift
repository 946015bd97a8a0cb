package import Platform

/// The reason why a TLS connection ended. Other connections are not affected.
package enum TLSConnectionError: Failure, Hashable {
  /// No agreement between client and server, or a client without TLS; with OpenSSL's text.
  case handshake(String)
  /// The server's certificate is not trusted, with OpenSSL's text.
  case certificate(String)
  /// The client's handshake takes longer than this limit, in seconds.
  case handshakeTime(seconds: Int64)
  /// The client has sent more than this limit before there were keys, in bytes.
  case handshakeSize(limit: Int)
  /// A malformed or forged record, with OpenSSL's text.
  case record(String)
  /// The connection ended without `close_notify`: the last data may have been truncated.
  case truncated
  /// The client requests responses of TLS itself and does not read them; this many bytes wait for it.
  case untaken(limit: Int)
  /// There are no keys yet, or the output has ended.
  case notWritable

  /// A one-line description for the person at the terminal.
  package var description: String {
    switch self {
    case .handshake(let reason): "the TLS handshake failed: \(reason)"
    case .certificate(let reason): "the server's certificate is not trusted: \(reason)"
    case .handshakeTime(let seconds): "the TLS handshake did not end within \(seconds) s"
    case .handshakeSize(let limit): "more than \(limit) bytes before the end of the TLS handshake"
    case .record(let reason): "a broken TLS record: \(reason)"
    case .truncated: "the connection ended without TLS's close_notify"
    case .untaken(let limit): "more than \(limit) bytes of TLS answers wait for a client that reads none"
    case .notWritable: "TLS can send nothing now"
    }
  }

  /// The kind of failure.
  package var kind: FailureKind { .inputOutput }
}
