import Platform

extension SessionTable {
  /// Carries out a request.
  ///
  /// - Throws: ``Refusal`` with the reason why the request is not carried out.
  mutating func carryOut(
    _ request: Request, on connection: Connection, at time: Instant
  ) throws(Refusal) -> Answer {
    guard request.version == .rtsp1 else { throw .version(request.version) }
    guard request.sequenceNumber != nil else {
      let texts = request.headers.values(of: "CSeq")
      throw .sequenceNumber(texts.isEmpty ? nil : texts.joined(separator: ", "))
    }
    if case .other(let name) = request.method { throw .unknownMethod(name) }
    guard RequestMethod.served.contains(request.method) else { throw .method(request.method) }
    let required = ["Require", "Proxy-Require"].flatMap { request.headers.values(of: $0) }
      .flatMap { $0.unquotedParts(at: UInt8(ascii: ",")) }
    guard required.isEmpty else { throw .options(required) }
    let target = try Self.refusing(Refusal.url) { () throws(RequestURLError) in try RequestTarget(request.uri) }
    // A request that names its session keeps it alive, whatever its outcome.
    let session = try session(of: request, on: connection, at: time)

    switch request.method {
    case .options: return options(request, session)
    case .getParameter, .setParameter: return try parameters(request, target, session)
    case .describe: return try describe(request, target, on: connection)
    case .setup: return try setup(request, target, session, on: connection, at: time)
    default:
      guard let session else { throw .session(nil) }
      let url = try resource(target, request.method, session)
      guard url.path == session.path else { throw .session("\(session.identifier)") }
      if let track = url.track, session.transports[track] == nil {
        throw .track(track, of: configuration.presentations[url.path] ?? 0)
      }
      guard let next = session.state.next(after: request.method) else { throw .state(session.state, request.method) }
      if request.method == .teardown { return teardown(request, session, url) }
      if let track = url.track, session.transports.count > 1 { throw .onlyAggregate(track: track) }
      return try control(request, session, url, next, on: connection)
    }
  }

  /// Returns the session that the request names; `nil` if it names none.
  private mutating func session(
    of request: Request, on connection: Connection, at time: Instant
  ) throws(Refusal) -> ServerSession? {
    let names = request.headers.values(of: "Session")
    guard let name = names.first else { return nil }
    guard names.count == 1, let identifier = SessionIdentifier(header: name), let session = sessions[identifier],
      session.client == connection.client, session.deadline > time
    else { throw .session(names.joined(separator: ", ")) }
    keepAlive(identifier, at: time)
    sessions[identifier]?.openConnections.insert(connection.identifier)
    sessions[identifier]?.isRefusing = false
    return sessions[identifier]
  }

  private static func refusing<Value, Failure>(
    _ refusal: (Failure) -> Refusal, _ body: () throws(Failure) -> Value
  ) throws(Refusal) -> Value {
    do throws(Failure) {
      return try body()
    } catch {
      throw refusal(error)
    }
  }

  /// Returns the URL of a served presentation. The root stands for the session's presentation, otherwise for the only
  /// one.
  private func resource(
    _ target: RequestTarget, _ method: RequestMethod, _ session: ServerSession? = nil
  ) throws(Refusal) -> RequestURL {
    guard case .resource(var url) = target else { throw .noPath(method) }
    if url.path == "/", configuration.presentations["/"] == nil {
      let own = configuration.presentations.keys.filter { !configuration.renditions.contains($0) }
      let only = own.count == 1 ? own[0] : nil
      url.path = session?.path ?? only ?? "/"
    }
    guard let tracks = configuration.presentations[url.path] else {
      // A session outlives the path that it was created for.
      if sessions.values.contains(where: { $0.path == url.path }), method != .describe, method != .setup { return url }
      throw .path(url.path)
    }
    if let track = url.track, track >= tracks { throw .track(track, of: tracks) }
    return url
  }

  private func sessionHeader(_ session: ServerSession) -> HeaderFields.Field {
    .init("Session", "\(session.identifier);timeout=\(configuration.timeoutSeconds)")
  }

  private func options(_ request: Request, _ session: ServerSession?) -> Answer {
    var response = Response(.ok, to: request)
    response.headers["Public"] = RequestMethod.served.map(\.description).joined(separator: ", ")
    if let session { response.headers["Session"] = sessionHeader(session).value }
    return Answer(response: response, effect: .none)
  }

  private func parameters(
    _ request: Request, _ target: RequestTarget, _ session: ServerSession?
  ) throws(Refusal) -> Answer {
    // Without a path, the request only tests whether the server responds.
    if case .resource = target { _ = try resource(target, request.method, session) }
    guard request.body.isEmpty else { throw .parameters }
    var response = Response(.ok, to: request)
    if let session { response.headers["Session"] = sessionHeader(session).value }
    return Answer(response: response, effect: .none)
  }

  private func describe(
    _ request: Request, _ target: RequestTarget, on connection: Connection
  ) throws(Refusal) -> Answer {
    let url = try resource(target, request.method)
    let accepted = request.headers.values(of: "Accept").flatMap { $0.unquotedParts(at: UInt8(ascii: ",")) }
    let isAccepted = accepted.contains { range in
      let type = range.prefix { $0 != ";" }.trimmed.asciiLowercased
      return ["application/sdp", "application/*", "*/*"].contains(type)
    }
    guard isAccepted || accepted.isEmpty else { throw .accept(accepted.joined(separator: ", ")) }
    let base = url.base(authority: connection.authority, scheme: connection.scheme)
    return Answer(
      response: Response(.ok, to: request),
      effect: .describe(
        path: url.path, contentBase: base,
        for: ClientProfile(userAgent: request.headers["User-Agent"], query: url.query)))
  }

  private mutating func setup(
    _ request: Request, _ target: RequestTarget, _ former: ServerSession?, on connection: Connection,
    at time: Instant
  ) throws(Refusal) -> Answer {
    let url = try resource(target, request.method, former)
    if let former, former.path != url.path { throw .aggregate(url.path) }
    // Some clients set up a presentation of one stream by the presentation's own URL.
    let tracks = configuration.presentations[url.path] ?? 0
    guard let track = url.track ?? (tracks == 1 ? 0 : nil) else { throw .aggregate(url.path) }
    let state = former?.state ?? .initial
    guard let next = state.next(after: .setup) else { throw .state(state, .setup) }
    let header = request.headers.values(of: "Transport")
    let used = usedChannels(on: connection, exceptTrack: track, of: former?.identifier)
    let capabilities = (configuration.transportsByPath[url.path] ?? configuration.transports)
      .onConnection(isEncrypted: connection.scheme == .rtsps)
    let transport = try Self.refusing(Refusal.transport) { () throws(TransportError) in
      try SelectedTransport(choosingFrom: header, capabilities: capabilities, usedChannels: used)
    }
    // Interleaved data cannot move from another connection to the session's connection.
    if let former, former.connection != connection.identifier, !transport.usedChannels.isEmpty {
      throw .session("\(former.identifier)")
    }
    var session: ServerSession
    var ended: ServerSession?
    if let former {
      session = former
    } else {
      ended = try makeRoom(for: connection, at: time)
      session = ServerSession(
        identifier: SessionIdentifier(), path: url.path, client: connection.client, connection: connection.identifier,
        state: .initial, transports: [:], deadline: time, openConnections: [connection.identifier])
    }
    session.state = next
    session.transports[track] = transport
    session.deadline = deadline(from: time)
    sessions[session.identifier] = session
    return Answer(
      response: Response(.ok, to: request, headers: [sessionHeader(session)]),
      effect: .setup(session.identifier, track: track, transport), ended: ended)
  }

  /// Makes room for a session by ending another if there is none: one that has no connection any more, and refuses
  /// packets or else has shown no sign of life for a while; the longest silent first.
  ///
  /// - Returns: The ended session.
  /// - Throws: ``Refusal`` for a session beyond the limits.
  private mutating func makeRoom(for connection: Connection, at time: Instant) throws(Refusal) -> ServerSession? {
    let isFull = sessions.count >= configuration.maximumSessions
    let own = sessions.values.filter { $0.client == connection.client }
    let isShareFull = own.count >= configuration.maximumSessionsPerAddress
    guard isFull || isShareFull else { return nil }
    // A client that fills its address's share costs no other address a session.
    guard let silent = longestSilent(of: isShareFull ? own : Array(sessions.values), at: time) else {
      throw isFull
        ? Refusal.sessions(limit: configuration.maximumSessions)
        : Refusal.sessionsPerAddress(limit: configuration.maximumSessionsPerAddress)
    }
    end(silent.identifier)
    return silent
  }

  private func longestSilent(of sessions: [ServerSession], at time: Instant) -> ServerSession? {
    // The deadline tells the last sign of life.
    let latest = deadline(from: time)
    let silence = Duration(nanoseconds: Int64(configuration.silenceSeconds) * 1_000_000_000)
    func isGone(_ session: ServerSession) -> Bool {
      session.isRefusing || !session.isMulticast && latest - session.deadline >= silence
    }
    // Nobody is at a port that refuses packets; a viewer without RTCP may only seem to be gone.
    return sessions.filter { $0.openConnections.isEmpty && isGone($0) }
      .min { ($0.isRefusing ? 0 : 1, $0.deadline) < ($1.isRefusing ? 0 : 1, $1.deadline) }
  }

  /// Returns the channels of a connection that other streams than this one use.
  private func usedChannels(
    on connection: Connection, exceptTrack track: Int, of identifier: SessionIdentifier?
  ) -> Set<UInt8> {
    var used: Set<UInt8> = []
    for session in sessions.values where session.connection == connection.identifier {
      for (other, transport) in session.transports where session.identifier != identifier || other != track {
        used.formUnion(transport.usedChannels)
      }
    }
    return used
  }

  private mutating func teardown(_ request: Request, _ session: ServerSession, _ url: RequestURL) -> Answer {
    if let track = url.track, session.transports.count > 1 {
      sessions[session.identifier]?.transports[track] = nil
      return Answer(
        response: Response(.ok, to: request, headers: [sessionHeader(session)]),
        effect: .release(session.identifier, track: track))
    }
    sessions[session.identifier] = nil
    return Answer(response: Response(.ok, to: request), effect: .teardown(session.identifier))
  }

  /// Carries out PLAY or PAUSE of a whole session.
  private mutating func control(
    _ request: Request, _ session: ServerSession, _ url: RequestURL, _ next: SessionState, on connection: Connection
  ) throws(Refusal) -> Answer {
    var response = Response(.ok, to: request, headers: [sessionHeader(session)])
    if let range = request.headers["Range"] {
      // PAUSE may also have a range, as the time of the pause: the only valid time is now (section 10.6).
      _ = try Self.refusing(Refusal.range) { () throws(PlayRangeError) in try PlayRange(range) }
    }
    guard request.method == .play else {
      sessions[session.identifier]?.state = next
      return Answer(response: response, effect: .pause(session.identifier))
    }
    response.headers["Range"] = PlayRange.answer
    // A camera's picture has only one speed, and the response says so (section 12.34, 12.35).
    for name in ["Scale", "Speed"] where request.headers[name] != nil { response.headers[name] = "1.0" }
    sessions[session.identifier]?.state = next
    let base = url.base(authority: connection.authority, scheme: connection.scheme)
    let urls = session.transports.keys.map { ($0, "\(base)\(RequestURL.trackPrefix)\($0)") }
    return Answer(
      response: response, effect: .play(session.identifier, urls: Dictionary(uniqueKeysWithValues: urls)))
  }
}
