import Credentials
import Media
import NIOCore
import RTP
import RTSP
import SRTP
import Streaming

extension Service {
  /// Answers one request, now or once something else has happened; the connection hands over no other before that.
  func answer(_ request: Request, on connection: Connection) {
    statistics.requests += 1
    let now = MediaTime.now()
    // What the server can do is no secret, and clients ask for it first.
    guard authenticator != nil, request.method != .options else { return carryOut(request, on: connection, at: now) }
    // Who brings no password is only told how to bring one.
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

  /// Does something for a connection at `time`, at once where that has passed.
  private func after(
    _ time: MediaTime, on connection: Connection, _ body: @escaping (Service, Connection) -> Void
  ) {
    let rest = time - .now()
    guard rest > .zero else { return body(self, connection) }
    // The connection may be gone by then, and nobody would let go of what is begun for it.
    let work = NIOLoopBound((self, connection, body), eventLoop: loop)
    loop.scheduleTask(in: .nanoseconds(rest.nanoseconds)) {
      let (service, connection, body) = work.value
      if !connection.isOver { body(service, connection) }
    }
  }

  private func carryOut(_ request: Request, on connection: Connection, at now: MediaTime) {
    var answer = table.answer(request, on: connection.table, at: now)
    if answer.refusal != nil { noteRefusal() }
    if case .path = answer.refusal { events.missed(by: connection.client, cameras: presentations.keys.sorted()) }
    defer { countSessions() }
    switch answer.effect {
    case .none, .release: break
    case .describe(let path, let base, let profile):
      // There: the answer is made of its path.
      guard let presentation = presentations[path] else { break }
      let text = description(of: presentation, for: profile, on: connection)
      answer.response.setDescription(text, contentBase: base)
    case .setup(let session, _, let transport):
      setUp(session, transport, request, &answer.response, on: connection)
    case .play(let session, let urls):
      return play(session, url: urls[0] ?? "", request, answer.response, on: connection)
    case .pause(let session): letGo(session)
    case .teardown(let session): end(session)
    }
    connection.answered(answer.response)
  }

  private func description(
    of presentation: ServedPresentation, for profile: ClientProfile, on connection: Connection
  ) -> String {
    // The key goes along, so that nobody else may read it.
    let offersKey = connection.table.scheme == .rtsps && profile.takesKey
    let stream = offersKey ? presentation.keys.offer(on: connection.number) : nil
    var description = presentation.pipeline.sessionDescription(
      forGuestsAt: connection.localAddress ?? .loopback, name: presentation.name, sessionID: presentation.sessionID,
      stream: stream, offersFeedback: profile.takesFeedback)
    if let stream { description.keyManagement = [presentation.keys.message(for: stream)] }
    return description.text
  }

  /// Makes ready to send a session its stream, or ends it with a refusal.
  private func setUp(
    _ session: SessionIdentifier, _ transport: SelectedTransport, _ request: Request, _ response: inout Response,
    on connection: Connection
  ) {
    // Another SETUP of a session is another way.
    letGo(session)
    func refuse(_ status: ResponseStatus) {
      noteRefusal()
      table.end(session)
      end(session)
      response = Response(status, to: request)
    }
    guard let presentation = table[session].flatMap({ presentations[$0.path] }) else { return refuse(.notFound) }
    sessions[session] = ServedSession(
      presentation: presentation, user: connection.user, hasPlayed: sessions[session]?.hasPlayed ?? false)
    guard let server = serverSide(of: transport, presentation, for: connection) else {
      return refuse(.unsupportedTransport)
    }
    guard transport.profile.isProtected else {
      presentation.keys.end(session)
      return response.setTransport(TransportAnswer(transport, server: server))
    }
    var controlKey: SRTPKey?
    do {
      controlKey = try KeyManagementField(request).map { try MIKEYMessage(text: $0.data).key }
    } catch {
      // A policy that is not served may be another in the client's next attempt.
      if case .unsupported = error as? MIKEYError { return refuse(.unsupportedTransport) }
      return refuse(.badRequest)
    }
    guard let stream = presentation.keys.take(for: session, on: connection.number, controlKey: controlKey) else {
      return refuse(.unsupportedTransport)
    }
    let ssrc = transport.delivery == .multicast ? nil : stream.ssrc
    response.setTransport(TransportAnswer(transport, server: server, ssrc: ssrc))
    let message = presentation.keys.message(for: stream)
    response.headers["KeyMgmt"] = KeyManagementField(url: request.uri, data: message).description
  }

  /// This side of a way to a client; nil where it cannot be had.
  private func serverSide(
    of transport: SelectedTransport, _ presentation: ServedPresentation, for connection: Connection
  ) -> TransportAnswer.Server? {
    switch transport.delivery {
    case .interleaved: return .interleaved
    case .multicast: return presentation.shared.server
    case .udp:
      guard let address = try? SocketAddress(host: connection.client, port: 1),
        let ports = try? presentation.pipeline.guestPorts(for: address)
      else { return nil }
      return .udp(PortPair(rtp: ports.media, rtcp: ports.control), client: connection.table.client)
    }
  }
}
