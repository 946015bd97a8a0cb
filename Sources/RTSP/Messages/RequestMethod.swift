/// The method of a request, RFC 2326 section 10. Names are case-sensitive.
public enum RequestMethod: Hashable, Sendable, CustomStringConvertible {
  /// Queries the server's methods (section 10.1).
  case options
  /// Requests the session description of a presentation (10.2).
  case describe
  /// Sends a session description to the server (10.3); not served.
  case announce
  /// Negotiates the transport of one stream (10.4).
  case setup
  /// Starts the streams of a session (10.5).
  case play
  /// Stops the streams and keeps the session (10.6).
  case pause
  /// Ends the session, or removes one of its streams (10.7).
  case teardown
  /// Reads a parameter; without a body, keeps the session alive (10.8).
  case getParameter
  /// Sets a parameter; without a body, keeps the session alive (10.9).
  case setParameter
  /// Redirects a client to another server (10.10). Only servers send it; not served.
  case redirect
  /// Requests a recording by the server (10.11); not served.
  case record
  /// A method outside the RFC.
  case other(String)

  /// The methods that a ``SessionTable`` answers, as listed in `Public`.
  public static let served: [RequestMethod] = [
    .options, .describe, .setup, .play, .pause, .teardown, .getParameter, .setParameter,
  ]

  private static let known: [RequestMethod] = served + [.announce, .redirect, .record]

  /// Creates the method of that name.
  public init(_ name: String) {
    self = Self.known.first { $0.description == name } ?? .other(name)
  }

  /// The method's name in a request line.
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
