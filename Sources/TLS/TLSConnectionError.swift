package import Media

/// Why a connection by TLS ended; it concerns nobody else.
package enum TLSConnectionError: Failure, Hashable {
  /// Client and server cannot agree, or the client speaks no TLS; OpenSSL's words.
  case handshake(String)
  /// The client takes longer than this for it, in seconds.
  case handshakeTime(seconds: Int64)
  /// The client has sent more than this before there were keys, in bytes.
  case handshakeSize(limit: Int)
  /// A record is broken or forged; OpenSSL's words.
  case record(String)
  /// The connection ended without `close_notify`: what was said last may have been cut off.
  case truncated
  /// The client asks for answers of TLS itself, and takes none; so many bytes wait for it.
  case untaken(limit: Int)
  /// There are no keys yet, or no more is to be sent.
  case notWritable

  /// One line for the person at the terminal.
  package var description: String {
    switch self {
    case .handshake(let reason): "TLS cannot be agreed on: \(reason)"
    case .handshakeTime(let seconds): "TLS is not agreed on within \(seconds) s"
    case .handshakeSize(let limit): "more than \(limit) bytes before TLS is agreed on"
    case .record(let reason): "a broken record of TLS: \(reason)"
    case .truncated: "the connection ended without TLS saying so"
    case .untaken(let limit): "more than \(limit) bytes of TLS's own answers wait for a client that takes none"
    case .notWritable: "nothing can be sent by TLS now"
    }
  }

  /// What kind of failure it is.
  package var kind: FailureKind { .inputOutput }
}
