/// What a request asks for, RFC 2326 section 10. Names are case-sensitive.
public enum RequestMethod: Hashable, Sendable, CustomStringConvertible {
  /// Asks what the server can do (section 10.1).
  case options
  /// Asks for the session description of a presentation (10.2).
  case describe
  /// Sends a session description to the server (10.3); not served.
  case announce
  /// Settles how one stream is sent (10.4).
  case setup
  /// Starts the streams of a session (10.5).
  case play
  /// Stops them and keeps the session (10.6).
  case pause
  /// Ends the session, or lets go of one of its streams (10.7).
  case teardown
  /// Reads a parameter; without a body a sign of life (10.8).
  case getParameter
  /// Sets a parameter; without a body a sign of life (10.9).
  case setParameter
  /// Sends a client elsewhere (10.10); comes from servers only, not served.
  case redirect
  /// Asks the server to record (10.11); not served.
  case record
  /// A name that the RFC does not know.
  case other(String)

  /// The methods that a ``SessionTable`` answers, as `Public` names them.
  public static let served: [RequestMethod] = [
    .options, .describe, .setup, .play, .pause, .teardown, .getParameter, .setParameter,
  ]

  private static let known: [RequestMethod] = served + [.announce, .redirect, .record]

  /// The method of that name.
  public init(_ name: String) {
    self = Self.known.first { $0.description == name } ?? .other(name)
  }

  /// Its name in a request line.
  public var description: String {
    switch self {
    case .options: "OPTIONS"
    case .describe: "DESCRIBE"
    case .announce: "ANNOUNCE"
    case .setup: "SETUP"
    case .play: "PLAY"
    case .pause: "PAUSE"
    case .teardown: "TEARDOWN"
    case .getParameter: "GET_PARAMETER"
    case .setParameter: "SET_PARAMETER"
    case .redirect: "REDIRECT"
    case .record: "RECORD"
    case .other(let name): name
    }
  }
}
