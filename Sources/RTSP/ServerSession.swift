public import Media
public import RTP

/// The server's state of a session, RFC 2326 appendix A.2.
public enum SessionState: Hashable, Sendable {
  /// No stream is set up.
  case initial
  /// Streams are set up, and none plays.
  case ready
  /// Streams play.
  case playing

  /// The state after `method` has been carried out; nil where it is not valid in this state (455). Methods that are in
  /// no table of the appendix change nothing.
  ///
  /// SETUP while playing, which the table has and section 10.4 leaves to the server, is refused: the streams of a session
  /// start together.
  public func next(after method: RequestMethod) -> SessionState? {
    switch (self, method) {
    case (_, .options), (_, .describe), (_, .getParameter), (_, .setParameter): self
    case (.initial, .setup), (.ready, .setup): .ready
    case (_, .teardown): .initial
    case (.ready, .play), (.playing, .play): .playing
    case (.playing, .pause): .ready
    default: nil
    }
  }

  /// The methods that are valid, for the `Allow` of a refusal.
  public var methods: [RequestMethod] {
    RequestMethod.served.filter { next(after: $0) != nil }
  }
}

/// One viewer's session.
public struct ServerSession: Hashable, Sendable {
  /// What the `Session` header calls it.
  public let identifier: SessionIdentifier
  /// The presentation's path.
  public let path: String
  /// The address that it was made from, the only one that may use it and that media goes to.
  public let client: ConnectionAddress
  /// The connection that its first SETUP came on; interleaved data goes there.
  public let connection: UInt64
  /// Where it is in the server's table of states.
  public internal(set) var state: SessionState
  /// How each of its streams is sent, by track.
  public internal(set) var transports: [Int: SelectedTransport]
  /// When it ends unless it is kept alive.
  public internal(set) var deadline: MediaTime

  /// Whether a stream of it goes over ``connection``, and so ends with it.
  public var isInterleaved: Bool { transports.values.contains { !$0.usedChannels.isEmpty } }
}
