public import Media
public import RTP

/// All sessions of an RTSP server, apart from its sockets: takes requests, gives answers and what is to be done.
///
/// The server reads requests with a ``RequestParser``, sees to authentication, and hands them over one by one in the order
/// of their arrival. A session is its client's, not its connection's (RFC 2326 section 3.2.5.1): a client may come back
/// on another connection, but from no other address. Requests that are pipelined need nothing more.
public struct SessionTable: Sendable {
  /// What is served, and how much of it.
  public struct Configuration: Hashable, Sendable {
    /// The presentations: path (`/camera`) and number of streams, `trackID=0` and up.
    public var presentations: [String: Int]
    /// The ways to send.
    public var transports: TransportCapabilities
    /// The ways to send of presentations that have others than ``transports``, by path.
    public var transportsByPath: [String: TransportCapabilities] = [:]
    /// Seconds without a sign of life after which a session ends; `timeout=` in `Session`.
    public var timeoutSeconds: Int
    /// Sessions at a time.
    public var maximumSessions: Int
    /// Sessions at a time from one address.
    public var maximumSessionsPerAddress: Int

    /// A configuration; see the properties.
    public init(
      presentations: [String: Int], transports: TransportCapabilities = TransportCapabilities(),
      timeoutSeconds: Int = 60, maximumSessions: Int = 128, maximumSessionsPerAddress: Int = 16
    ) {
      self.presentations = presentations
      self.transports = transports
      self.timeoutSeconds = timeoutSeconds
      self.maximumSessions = maximumSessions
      self.maximumSessionsPerAddress = maximumSessionsPerAddress
    }
  }

  /// The connection that a request came on.
  public struct Connection: Hashable, Sendable {
    /// A number that no other connection of the server has or had.
    public var identifier: UInt64
    /// Where it comes from.
    public var client: ConnectionAddress
    /// Host and port that it goes to, for clients that send a path instead of a URL.
    public var authority: String
    /// Whether it is encrypted: rtsp or rtsps.
    public var scheme: RequestURL.Scheme

    /// A connection; see the properties.
    public init(
      identifier: UInt64, client: ConnectionAddress, authority: String, scheme: RequestURL.Scheme = .rtsp
    ) {
      self.identifier = identifier
      self.client = client
      self.authority = authority
      self.scheme = scheme
    }
  }

  /// What the server has to do before it sends the response. Where it cannot, it calls ``end(_:)`` for what was set up
  /// and sends a response of its own.
  public enum Effect: Hashable, Sendable {
    /// Nothing.
    case none
    /// Make the session description, and put it into the response by ``Response/setDescription(_:contentBase:)``.
    case describe(path: String, contentBase: String, for: ClientProfile)
    /// Make ready to send this stream in this way, instead of the way of an earlier SETUP; put the server's side into
    /// the response by ``Response/setTransport(_:)``.
    case setup(SessionIdentifier, track: Int, SelectedTransport)
    /// Start, or go on, after the response; put in where the streams begin by ``Response/setRTPInformation(_:)``. The
    /// URLs are those of the streams by track. A session that plays already goes on playing.
    case play(SessionIdentifier, urls: [Int: String])
    /// Stop sending, and stay ready.
    case pause(SessionIdentifier)
    /// Let go of one stream of a session that has more.
    case release(SessionIdentifier, track: Int)
    /// Let go of all: the session is over.
    case teardown(SessionIdentifier)
  }

  /// What becomes of a request.
  public struct Answer: Sendable {
    /// What to send, completed as the effect says.
    public var response: Response
    /// What to do.
    public var effect: Effect
    /// Why the request was refused, for the log; nil where it was not.
    public var refusal: Refusal?
  }

  /// What is served. A change holds for later requests; sessions of a path that is gone go on until they end.
  public var configuration: Configuration
  /// The sessions there are.
  public internal(set) var sessions: [SessionIdentifier: ServerSession] = [:]

  /// A table without sessions.
  public init(configuration: Configuration) {
    self.configuration = configuration
  }

  /// A session that was set up and has not ended.
  public subscript(identifier: SessionIdentifier) -> ServerSession? { sessions[identifier] }

  /// Whose interleaved data comes on this channel of this connection: RTCP from a viewer, which is a sign of life too.
  /// Nil where no stream has the channel.
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
  ///   - request: A request whose sender may make it.
  ///   - connection: The connection that it came on.
  ///   - time: Now.
  public mutating func answer(_ request: Request, on connection: Connection, at time: MediaTime) -> Answer {
    do throws(Refusal) {
      return try carryOut(request, on: connection, at: time)
    } catch {
      var response = Response(error.status, to: request)
      for field in error.headers { response.headers.append(field.name, field.value) }
      if case .path = error { response.setText(presentationURLs(of: request, on: connection)) }
      if error.isOfSession, let session = request.headers["Session"].flatMap(SessionIdentifier.init(header:)) {
        response.headers["Session"] = "\(session)"
      }
      return Answer(response: response, effect: .none, refusal: error)
    }
  }

  /// The URLs of what is served, one a line, as the client of `request` reaches them.
  private func presentationURLs(of request: Request, on connection: Connection) -> String {
    let url = try? RequestURL(request.uri)
    return configuration.presentations.keys.sorted().compactMap { path in
      guard var other = url else { return nil }
      other.path = path
      return String(other.base(authority: connection.authority, scheme: connection.scheme).dropLast()) + "\r\n"
    }.joined()
  }

  /// A sign of life of a session, such as RTCP from its viewer.
  public mutating func keepAlive(_ identifier: SessionIdentifier, at time: MediaTime) {
    let deadline = deadline(from: time)
    sessions[identifier]?.deadline = deadline
  }

  /// Ends a session for a reason of the server's own; false where it has ended before.
  @discardableResult
  public mutating func end(_ identifier: SessionIdentifier) -> Bool {
    sessions.removeValue(forKey: identifier) != nil
  }

  /// Ends the sessions that gave no sign of life for too long.
  ///
  /// - Returns: Those that have ended: the server lets go of their streams.
  public mutating func expire(at time: MediaTime) -> [SessionIdentifier] {
    end { $0.deadline <= time }
  }

  /// When the next session would end without a sign of life; nil where there is none.
  public var nextDeadline: MediaTime? { sessions.values.map(\.deadline).min() }

  /// Ends the sessions that cannot go on without a connection: those whose streams went over it. Others go on: their
  /// client may come back.
  ///
  /// - Returns: Those that have ended: the server lets go of their streams.
  public mutating func connectionClosed(_ connection: UInt64) -> [SessionIdentifier] {
    end { $0.connection == connection && $0.isInterleaved }
  }

  private mutating func end(where isOver: (ServerSession) -> Bool) -> [SessionIdentifier] {
    let over = sessions.values.filter(isOver).map(\.identifier)
    for identifier in over { sessions[identifier] = nil }
    return over
  }

  func deadline(from time: MediaTime) -> MediaTime {
    time + MediaTime(nanoseconds: Int64(configuration.timeoutSeconds) * 1_000_000_000)
  }
}
