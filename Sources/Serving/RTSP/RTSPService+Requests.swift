import NIOCore
import Platform
import RTP
import RTSP
import SRTP
import Streaming

extension RTSPService {
  /// Answers one request, now or after another event; the connection hands over no other request before that.
  func answer(_ request: Request, on connection: RTSPConnection) {
    statistics.requests += 1
    let now = Instant.now()
    // The methods of the server are no secret, and clients ask for them first.
    guard authenticator != nil, request.method != .options else { return carryOut(request, on: connection, at: now) }
    // A client without a password only gets a challenge.
    let isLogin = request.headers["Authorization"] != nil && !connection.hasLoggedIn
    guard let peer = connection.peer, !isLogin || failedLogins.mayTry(from: peer, at: now) else {
      connection.answered(Response(.serviceUnavailable, to: request))
      return connection.closeSoon()
    }
    let outcome = authenticator?.authenticate(
      DigestAuthenticator.Request(
        method: "\(request.method)", uri: request.uri, authorization: request.headers["Authorization"], peer: peer,
        connection: connection.number), at: now)
    switch outcome {
    case .granted(let user):
      let time = isLogin ? failedLogins.noteSuccess(from: peer, at: now) : now
      if let role = configuration.users?[user]?.role, role < .view {
        noteRefusal()
        noteClosing(
          of: connection,
          "\(user) has the role \(role.rawValue), and watching needs \(Role.view.rawValue): "
            + ServiceAccount.command("user role \(user) \(Role.view.rawValue)"))
        return after(time, on: connection) {
          $1.answered(Response(.forbidden, to: request))
          $1.closeSoon()
        }
      }
      connection.user = configuration.users?[user]
      after(time, on: connection) { $0.carryOut(request, on: $1, at: .now()) }
    case .challenge(let values, let refusal):
      var response = Response(.unauthorized, to: request)
      for value in values { response.headers.append("WWW-Authenticate", value) }
      var time = now
      if refusal == .credentials {
        statistics.failedLogins += 1
        connection.user = nil
        events.loginFailed(from: connection.client)
        time = failedLogins.noteFailure(from: peer, at: now)
      }
      after(time, on: connection) { $1.answered(response) }
    case .badRequest, nil:
      noteRefusal()
      connection.answered(Response(.badRequest, to: request))
    }
  }

  /// Runs `body` for a connection at `time`, or at once if that has passed.
  private func after(
    _ time: Instant, on connection: RTSPConnection, _ body: @escaping (RTSPService, RTSPConnection) -> Void
  ) {
    let rest = time - .now()
    guard rest > .zero else { return body(self, connection) }
    // The connection may be gone by then, and nothing would release what `body` starts for it.
    let work = NIOLoopBound((self, connection, body), eventLoop: loop)
    loop.scheduleTask(in: .nanoseconds(rest.nanoseconds)) {
      let (service, connection, body) = work.value
      if !connection.isOver { body(service, connection) }
    }
  }

  private func carryOut(_ request: Request, on connection: RTSPConnection, at now: Instant) {
    var answer = table.answer(request, on: connection.table, at: now)
    if let refusal = answer.refusal { note(refusal, of: connection) }
    if let ended = answer.ended {
      // A player that was started again at the same ports would take the BYE for its own.
      let isAtItsPort = ended.client == connection.table.client && ended.uses(portOf: answer.effect)
      end(ended.identifier, goodbye: !isAtItsPort)
    }
    defer { countSessions() }
    switch answer.effect {
    case .none: break
    case .release(let session, let track): release(session, track: track)
    case .describe(let path, let base, let profile):
      // The presentation exists: the answer contains its path.
      guard let presentation = presentations[path] else { break }
      if presentation.isH264, let refusal = presentation.pipeline.h264Refusal {
        noteRefusal()
        answer.response = response(to: request, refused: refusal, on: connection)
        break
      }
      let text = description(of: presentation, base, for: profile, on: connection)
      answer.response.setDescription(text, contentBase: base)
    case .setup(let session, let track, let transport):
      setUp(session, track: track, transport, request, &answer.response, on: connection)
    case .play(let session, let urls):
      return play(session, urls: urls, request, answer.response, on: connection)
    case .pause(let session): letGo(session)
    case .teardown(let session): end(session)
    }
    connection.answered(answer.response)
  }

  /// Counts a refusal, and reports one that a user can mend.
  private func note(_ refusal: Refusal, of connection: RTSPConnection) {
    noteRefusal()
    switch refusal {
    case .path: events.missed(by: connection.client, cameras: presentations.keys.sorted())
    case .sessions, .sessionsPerAddress:
      events.refused(connection.client, reason: "\(refusal), or allow more with --rtsp-sessions")
    default: break
    }
  }

  /// Reports that a client gets no H.264 beside another codec, and returns the response, which says why, and when to ask again.
  func response(to request: Request, refused refusal: H264Refusal, on connection: RTSPConnection) -> Response {
    let status: ResponseStatus = refusal.kind == .unavailable ? .notImplemented : .serviceUnavailable
    var response = response(status, to: request, refused: refusal.description, on: connection)
    if let seconds = refusal.retryAfter { response.headers["Retry-After"] = "\(seconds)" }
    return response
  }

  /// Reports that a request is refused, and returns the response, which tells the client the reason.
  func response(
    _ status: ResponseStatus, to request: Request, refused reason: String, on connection: RTSPConnection
  ) -> Response {
    events.refused(connection.client, reason: reason)
    var response = Response(status, to: request)
    response.setText("\(reason)\r\n")
    return response
  }

  /// - Parameter base: the URL of the presentation, with a slash at its end.
  private func description(
    of presentation: ServedPresentation, _ base: String, for profile: ClientProfile, on connection: RTSPConnection
  ) -> String {
    // The key is part of the description, so only the client may read it.
    let offersKey = connection.table.scheme == .rtsps && profile.takesKey
    let streams = offersKey ? presentation.keys.offer(on: connection.number) : []
    var description = presentation.pipeline.sessionDescription(
      of: presentation.tracks, forGuestsAt: connection.localAddress ?? .loopback, name: presentation.name,
      sessionID: presentation.sessionID,
      protection: streams, offersFeedback: profile.takesFeedback)
    for stream in streams {
      guard let track = presentation.tracks.firstIndex(of: stream.track) else { continue }
      description.media[track].keyManagement = [presentation.keys.message(for: stream)]
    }
    if presentation.pipeline.h264ParameterSets != nil, !presentation.isH264 {
      // A player shows it, or a person finds it. Of a URL, a part is worth nothing.
      let words = "H.264 for players without HEVC: \(base)\(Presentation.h264Name)"
      if words.utf8.count <= SessionDescription.textLimit { description.information = words }
    }
    return description.text
  }

  /// Prepares to send a session a track, or ends the track with a refusal, and the session with its only one.
  private func setUp(
    _ session: SessionIdentifier, track: Int, _ transport: SelectedTransport, _ request: Request,
    _ response: inout Response, on connection: RTSPConnection
  ) {
    // Another SETUP of a session changes its transport.
    letGo(session)
    func refuse(_ status: ResponseStatus) {
      noteRefusal()
      if table.release(session, track: track) { release(session, track: track) } else { end(session) }
      response = Response(status, to: request)
    }
    guard let presentation = table[session].flatMap({ presentations[$0.path] }) else { return refuse(.notFound) }
    sessions[session] = ServedSession(
      presentation: presentation, user: connection.user, hasPlayed: sessions[session]?.hasPlayed ?? false,
      places: sessions[session]?.places ?? [:])
    guard let server = serverSide(of: transport, track: track, presentation, for: connection) else {
      return refuse(.unsupportedTransport)
    }
    guard transport.profile.isProtected else {
      presentation.keys.end(session, track: track)
      return response.setTransport(TransportAnswer(transport, server: server))
    }
    var controlKey: SRTPKey?
    do {
      controlKey = try KeyManagementField(request).map { try MIKEYMessage(text: $0.data).key }
    } catch {
      // The client's next attempt may use another policy than one that is not supported.
      if case .unsupported = error as? MIKEYError { return refuse(.unsupportedTransport) }
      return refuse(.badRequest)
    }
    let taken = presentation.keys.take(
      for: session, track: track, on: connection.number, controlKey: controlKey)
    guard let stream = taken else { return refuse(.unsupportedTransport) }
    let ssrc = transport.delivery == .multicast ? nil : stream.ssrc
    response.setTransport(TransportAnswer(transport, server: server, ssrc: ssrc))
    let message = presentation.keys.message(for: stream)
    response.headers["KeyMgmt"] = KeyManagementField(url: request.uri, data: message).description
  }

  /// Returns the server's side of a transport to a client; nil if it is not available.
  private func serverSide(
    of transport: SelectedTransport, track: Int, _ presentation: ServedPresentation, for connection: RTSPConnection
  ) -> TransportAnswer.Server? {
    switch transport.delivery {
    case .interleaved: return .interleaved
    case .multicast: return presentation.shared[track].server
    case .udp:
      guard let address = try? SocketAddress(host: connection.client, port: 1),
        let ports = try? presentation.pipeline.guestPorts(for: address)
      else { return nil }
      return .udp(PortPair(rtp: ports.media, rtcp: ports.control), client: connection.table.client)
    }
  }
}

extension ServerSession {
  /// Returns `true` if a stream of the session goes to the port that this SETUP chose.
  fileprivate func uses(portOf effect: SessionTable.Effect) -> Bool {
    guard case .setup(_, _, let transport) = effect, let port = transport.port else { return false }
    return transports.values.contains { $0.port == port }
  }
}
