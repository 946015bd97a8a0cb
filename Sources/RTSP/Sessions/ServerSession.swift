public import Platform
public import RTP

/// The server's state of a session, RFC 2326 appendix A.2.
public enum SessionState: Hashable, Sendable {
  /// No stream is set up.
  case initial
  /// Streams are set up, and none plays.
  case ready
  /// Streams play.
  case playing

  /// Returns the state after `method`; `nil` if the method is not valid in this state (455). Methods outside the
  /// appendix's tables change nothing.
  ///
  /// SETUP while playing is refused, because the streams of a session start together. The table has it, and section
  /// 10.4 leaves it to the server.
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

  /// The valid methods, for the `Allow` of a refusal.
  public var methods: [RequestMethod] {
    RequestMethod.served.filter { next(after: $0) != nil }
  }
}

/// One viewer's session.
public struct ServerSession: Hashable, Sendable {
  /// The identifier in the `Session` header.
  public let identifier: SessionIdentifier
  /// The presentation's path.
  public let path: String
  /// The address of the client that created the session. Only this address may use the session, and media goes there.
  public let client: ConnectionAddress
  /// The connection of the first SETUP; interleaved data goes there.
  public let connection: UInt64
  /// The state in the server's state table.
  public internal(set) var state: SessionState
  /// The transport of each stream, by track.
  public internal(set) var transports: [Int: SelectedTransport]
  /// The time at which the session ends unless it is kept alive.
  public internal(set) var deadline: Instant
  /// The open connections that have named the session, with that of the first SETUP.
  public internal(set) var openConnections: Set<UInt64>
  /// The open connection that the session needs: that of the first SETUP, or after its end the newest of those that
  /// have named the session; `nil` if all have ended.
  public var carrier: UInt64? { openConnections.contains(connection) ? connection : openConnections.max() }
  /// `true` if the client's ports refuse packets, and no request has come since.
  public internal(set) var isRefusing = false

  /// `true` if a stream of the session goes to a group, whose receivers' reports name no session.
  var isMulticast: Bool { transports.values.contains { $0.delivery == .multicast } }

  /// `true` if a stream of the session goes over ``connection``, so that the session ends with the connection.
  public var isInterleaved: Bool { transports.values.contains { !$0.usedChannels.isEmpty } }
}
