public import Platform

/// The reason why a stream cannot be received, or is received no more.
public enum ReceiverError: Failure, Hashable {
  /// The URL is no RTSP URL.
  case url(String)
  /// A value of the configuration is impossible.
  case configuration(String)
  /// The host is unknown.
  case host(String)
  /// The host or a device between refuses the connection, or it breaks.
  case connection(String)
  /// The server did not answer in time.
  case time(String)
  /// The connection is not encrypted as it must be: TLS fails, or the certificate is another one.
  case encryption(String)
  /// The stream is encrypted (SRTP), and its key is missing, malformed, or came in the clear. No part of a key is in the text.
  case key(String)
  /// Packets come, and none is of a sender with the key.
  case forged(String)
  /// The server wants a user name and a password, or refuses those that it got.
  case credentials(String)
  /// The server refuses a request.
  case refused(status: Int, reason: String)
  /// The server sends the client to another address. Nobody is followed there.
  case redirected(String)
  /// The server's messages are malformed, or exceed the limits.
  case malformed(String)
  /// The stream has nothing that can be received.
  case unsupported(String)
  /// No packets came for too long.
  case silence(String)
  /// The server ended the stream.
  case ended
  /// The receiver was stopped.
  case stopped

  /// A one-line message for the terminal.
  public var description: String {
    switch self {
    case .url(let reason), .configuration(let reason), .host(let reason), .connection(let reason), .time(let reason),
      .encryption(let reason), .credentials(let reason), .malformed(let reason), .unsupported(let reason),
      .silence(let reason), .key(let reason), .forged(let reason):
      reason
    case .refused(let status, let reason): "the server refuses: \(status) \(reason)"
    case .redirected(let place): "the server redirects to \(place); nightjar follows no redirects: give that URL"
    case .ended: "the server ended the stream"
    case .stopped: "the receiver was stopped"
    }
  }

  /// The kind of failure.
  public var kind: FailureKind {
    switch self {
    case .url, .configuration: .usage
    case .host: .noHost
    case .credentials: .noPermission
    case .malformed: .data
    case .refused, .redirected, .unsupported, .encryption, .key: .unavailable
    case .connection, .time, .silence, .forged, .ended: .temporary
    case .stopped: .software
    }
  }

  /// `true` if another attempt may succeed without a change by the user.
  public var isTemporary: Bool {
    switch self {
    case .host, .connection, .time, .silence, .forged, .ended, .malformed: true
    case .refused(let status, _): [404, 453, 454].contains(status) || status >= 500
    default: false
    }
  }
}
