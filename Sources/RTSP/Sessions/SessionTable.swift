public import Platform
public import RTP

/// All sessions of an RTSP server, independent of its sockets. The table takes requests, and returns responses and
/// their effects.
///
/// The server reads requests with a ``RequestParser``, authenticates them, and passes them on one by one in the order
/// of their arrival. A session belongs to its client, not to its connection (RFC 2326 section 3.2.5.1). A client may
/// return on another connection, but only from the same address. Pipelined requests need no special treatment.
public struct SessionTable: Sendable {
  /// The presentations of a server, and its limits.
  public struct Configuration: Hashable, Sendable {
    /// The presentations: the path (`/camera`) and the number of streams, from `trackID=0` up.
    public var presentations: [String: Int]
    /// The supported transports.
    public var transports: TransportCapabilities
    /// The transports of presentations that differ from ``transports``, by path.
    public var transportsByPath: [String: TransportCapabilities] = [:]
    /// The paths of ``presentations`` that are another coding of a presentation with a path of its own: `/` never stands for
    /// them.
    public var renditions: Set<String> = []
    /// The time in seconds after which a session without keep-alive ends; `timeout=` in `Session`.
    public var timeoutSeconds: Int
    /// The time in seconds without a sign of life after which a session that has no connection any more makes room
    /// for a new one, if room is short.
    public var silenceSeconds: Int
    /// The maximum number of sessions at a time.
    public var maximumSessions: Int
    /// The maximum number of sessions at a time from one address.
    public var maximumSessionsPerAddress: Int

    /// Creates a configuration; see the properties.
    public init(
      presentations: [String: Int], transports: TransportCapabilities = TransportCapabilities(),
      timeoutSeconds: Int = 60, silenceSeconds: Int = 15, maximumSessions: Int = 128,
      maximumSessionsPerAddress: Int = 16
    ) {
      self.presentations = presentations
      self.transports = transports
      self.timeoutSeconds = timeoutSeconds
      self.silenceSeconds = silenceSeconds
      self.maximumSessions = maximumSessions
      self.maximumSessionsPerAddress = maximumSessionsPerAddress
    }
  }

  /// The connection of a request.
  public struct Connection: Hashable, Sendable {
    /// A number that no other connection of the server has or had.
    public var identifier: UInt64
    /// The client's address.
    public var client: ConnectionAddress
    /// The host and port that the client connected to, for clients that send a path instead of a URL.
    public var authority: String
    /// The scheme: rtsps if the connection is encrypted, otherwise rtsp.
    public var scheme: RequestURL.Scheme

    /// Creates a connection; see the properties.
    public init(
      identifier: UInt64, client: ConnectionAddress, authority: String, scheme: RequestURL.Scheme = .rtsp
    ) {
      self.identifier = identifier
      self.client = client
      self.authority = authority
      self.scheme = scheme
    }
  }

  /// The server's task before it sends the response. If the task fails, the server calls ``end(_:)`` for the session
  /// that was set up, and sends a response of its own.
  public enum Effect: Hashable, Sendable {
    /// No task.
    case none
    /// Create the session description, and add it to the response by ``Response/setDescription(_:contentBase:)``.
    case describe(path: String, contentBase: String, for: ClientProfile)
    /// Prepare to send this stream by this transport, which replaces that of an earlier SETUP. Add the server's side
    /// to the response by ``Response/setTransport(_:)``.
    case setup(SessionIdentifier, track: Int, SelectedTransport)
    /// Start or continue after the response. Add the start of each stream by ``Response/setRTPInformation(_:)``. The
    /// URLs are those of the streams, by track. A session that plays already continues to play.
    case play(SessionIdentifier, urls: [Int: String])
    /// Stop sending, and stay ready.
    case pause(SessionIdentifier)
    /// Release one stream of a session that has more.
    case release(SessionIdentifier, track: Int)
    /// Release all streams: the session has ended.
    case teardown(SessionIdentifier)
  }

  /// The outcome of a request.
  public struct Answer: Sendable {
    /// The response to send, completed as the effect requires.
    public var response: Response
    /// The server's task.
    public var effect: Effect
    /// The reason for a refusal, for the log; `nil` if the request was not refused.
    public var refusal: Refusal?
    /// The session that has ended to make room for the one that was set up; release its streams first.
    public var ended: ServerSession?
  }

  /// The served presentations. A change applies to later requests. Sessions of a removed path continue until they
  /// end.
  public var configuration: Configuration
  /// The current sessions.
  public internal(set) var sessions: [SessionIdentifier: ServerSession] = [:]

  /// Creates a table without sessions.
  public init(configuration: Configuration) {
    self.configuration = configuration
  }

  /// Returns a session that was set up and has not ended.
  public subscript(identifier: SessionIdentifier) -> ServerSession? { sessions[identifier] }

  /// Returns the stream whose interleaved data comes on this channel of this connection: RTCP from a viewer, which
  /// also keeps the session alive. Returns `nil` if no stream has the channel.
  public func stream(
    onChannel channel: UInt8, of connection: UInt64
  ) -> (session: SessionIdentifier, track: Int, isRTCP: Bool)? {
    for session in sessions.values where session.connection == connection {
      for (track, transport) in session.transports {
        guard case .interleaved(let channels) = transport.delivery else { continue }
        if channel == channels.rtp { return (session.identifier, track, false) }
        if channel == channels.rtcp { return (session.identifier, track, true) }
      }
    }
    return nil
  }

  /// Answers a request.
  ///
  /// - Parameters:
  ///   - request: A request from an authorized sender.
  ///   - connection: The request's connection.
  ///   - time: The current time.
  public mutating func answer(_ request: Request, on connection: Connection, at time: Instant) -> Answer {
    do throws(Refusal) {
      return try carryOut(request, on: connection, at: time)
    } catch {
      var response = Response(error.status, to: request)
      for field in error.headers { response.headers.append(field.name, field.value) }
      switch error {
      case .path: response.setText(presentationURLs(of: request, on: connection))
      case .sessions, .sessionsPerAddress: response.setText("\(error)\r\n")
      default: break
      }
      if error.isOfSession, let session = request.headers["Session"].flatMap(SessionIdentifier.init(header:)) {
        response.headers["Session"] = "\(session)"
      }
      return Answer(response: response, effect: .none, refusal: error)
    }
  }

  /// Returns the URLs of the presentations, one per line, as the client of `request` reaches them.
  private func presentationURLs(of request: Request, on connection: Connection) -> String {
    let url = try? RequestURL(request.uri)
    return configuration.presentations.keys.sorted().compactMap { path in
      guard var other = url else { return nil }
      other.path = path
      return String(other.base(authority: connection.authority, scheme: connection.scheme).dropLast()) + "\r\n"
    }.joined()
  }

  /// Keeps a session alive, for example after RTCP from its viewer.
  public mutating func keepAlive(_ identifier: SessionIdentifier, at time: Instant) {
    let deadline = deadline(from: time)
    // RTCP may be noted after a request that came later.
    if let former = sessions[identifier]?.deadline, former < deadline { sessions[identifier]?.deadline = deadline }
  }

  /// Notes that the client's ports refuse packets, so that nobody listens there, or that they take packets again.
  public mutating func note(_ identifier: SessionIdentifier, isRefusing: Bool) {
    sessions[identifier]?.isRefusing = isRefusing
  }

  /// Ends a session for the server's own reasons. Returns `false` if it has ended before.
  @discardableResult
  public mutating func end(_ identifier: SessionIdentifier) -> Bool {
    sessions.removeValue(forKey: identifier) != nil
  }

  /// Releases one stream of a session for the server's own reasons. Ends a session that has no other.
  ///
  /// - Returns: `true` if the session continues with other streams.
  public mutating func release(_ identifier: SessionIdentifier, track: Int) -> Bool {
    sessions[identifier]?.transports[track] = nil
    guard sessions[identifier]?.transports.isEmpty == false else {
      end(identifier)
      return false
    }
    return true
  }

  /// Ends the sessions that were not kept alive.
  ///
  /// - Returns: The ended sessions, whose streams the server must release.
  public mutating func expire(at time: Instant) -> [SessionIdentifier] {
    end { $0.deadline <= time }
  }

  /// The time at which the next session ends unless it is kept alive; `nil` without sessions.
  public var nextDeadline: Instant? { sessions.values.map(\.deadline).min() }

  /// Ends the sessions whose streams went over a closed connection. Other sessions continue, because their client may
  /// return.
  ///
  /// - Returns: The ended sessions, whose streams the server must release.
  public mutating func connectionClosed(_ connection: UInt64) -> [SessionIdentifier] {
    let ended = end { $0.connection == connection && $0.isInterleaved }
    let left = sessions.values.filter { $0.openConnections.contains(connection) }.map(\.identifier)
    for identifier in left { sessions[identifier]?.openConnections.remove(connection) }
    return ended
  }

  private mutating func end(where isOver: (ServerSession) -> Bool) -> [SessionIdentifier] {
    let over = sessions.values.filter(isOver).map(\.identifier)
    for identifier in over { sessions[identifier] = nil }
    return over
  }

  func deadline(from time: Instant) -> Instant {
    time + Duration(nanoseconds: Int64(configuration.timeoutSeconds) * 1_000_000_000)
  }
}
