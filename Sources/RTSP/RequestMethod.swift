/// What a request asks for, RFC 2326 section 10. Names are case-sensitive.
public enum RequestMethod: Hashable, Sendable, CustomStringConvertible {
  /// One that the RFC names.
  case options, describe, announce, setup, play, pause, teardown, getParameter, setParameter, redirect, record
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
