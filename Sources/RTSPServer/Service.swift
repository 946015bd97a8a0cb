import Credentials
import Glibc
import Media
import NIOCore
import RTP
import RTSP
import SRTP
import Streaming

/// All that an RTSP server knows, on its event loop: connections, sessions, and who plays.
final class Service {
  let configuration: ServerConfiguration
  let pipeline: Pipeline
  private let loop: any EventLoop
  private var table: SessionTable
  private var authenticator: DigestAuthenticator?
  private var failedLogins = FailedLogins()
  private var connections: [UInt64: Connection] = [:]
  private var playing: [SessionIdentifier: Playing] = [:]
  private var group: SharedGroup
  private var keys: ViewerKeys
  private var lastConnection: UInt64 = 0
  private var lastPlay: UInt64 = 0
  private let packets = PacketWriter()
  private let sessionID = UInt64(time(nil)) &+ 2_208_988_800  // NTP seconds, as RFC 8866 section 5.2 suggests
  private let events: ServerEvents
  private(set) var statistics = ServerStatistics()

  /// How often it is looked whether something has taken too long.
  private static let tick = TimeAmount.seconds(1)
  /// How long the answer to PLAY waits for the first picture, where the camera gives none.
  private static let startPatience = TimeAmount.seconds(2)

  init(_ configuration: ServerConfiguration, _ pipeline: Pipeline, _ loop: any EventLoop, _ events: ServerEvents) {
    self.configuration = configuration
    self.events = events
    self.pipeline = pipeline
    self.loop = loop
    var transports = TransportCapabilities(isMulticastServed: configuration.group != nil, isMultiplexingServed: true)
    transports.requiresEncryption = configuration.requiresEncryption
    if configuration.suite != nil { transports.profiles.formUnion([.savp, .savpf]) }
    table = SessionTable(
      configuration: SessionTable.Configuration(
        presentations: ["/\(configuration.path)": 1],
        transports: transports,
        timeoutSeconds: configuration.sessionSeconds, maximumSessions: configuration.sessions,
        maximumSessionsPerAddress: configuration.sessionsPerAddress))
    authenticator = configuration.users.map { DigestAuthenticator(users: $0, at: .now()) }
    keys = ViewerKeys(configuration, pipeline)
    group = SharedGroup(configuration.group, pipeline, stream: keys.group)
    let service = NIOLoopBound(self, eventLoop: loop)
    loop.scheduleRepeatedTask(initialDelay: Self.tick, delay: Self.tick) { _ in service.value.keepTime() }
  }

  // MARK: Connections

  /// Takes up a connection; nil where there are too many, or it is from elsewhere than is served.
  func open(_ channel: any Channel, isEncrypted: Bool) -> Connection? {
    lastConnection += 1
    // One without an address has gone already.
    guard let connection = Connection(channel, number: lastConnection, isEncrypted: isEncrypted, self, at: .now())
    else { return nil }
    guard !configuration.servesThisMachineAlone || Self.isHere(connection.client) else {
      events.cameFromElsewhere()
      return nil
    }
    // One host has many IPv6 addresses.
    let network = connection.peer?.network
    guard connections.count < configuration.connections,
      connections.values.count(where: { $0.peer?.network == network }) < configuration.connectionsPerAddress
    else {
      statistics.turnedAway += 1
      events.turnedAway()
      return nil
    }
    connections[connection.number] = connection
    statistics.connections = connections.count
    return connection
  }

  /// Whether a client's address is this machine by its own name; the kernel lets no such address in from a network.
  private static func isHere(_ client: String) -> Bool {
    (try? SocketAddress(host: client, port: 1))?.isLoopback ?? false
  }

  func closed(_ connection: Connection) {
    connection.noteClosed()
    connections[connection.number] = nil
    statistics.connections = connections.count
    keys.forget(connection.number)
    for session in table.connectionClosed(connection.number) { end(session) }
    countSessions()
  }

  func noteRefusal() { statistics.refused += 1 }

  func noteRefusal(of connection: Connection, _ reason: String) {
    noteRefusal()
    noteClosing(of: connection, reason)
  }

  /// Has it told that a connection is closed by us.
  func noteClosing(of connection: Connection, _ reason: String) { events.closed(connection.client, reason: reason) }

  /// Takes RTCP that a viewer sends between its requests.
  func receive(_ frame: InterleavedFrame, on connection: Connection) {
    // One that has paused lives by it too.
    guard let stream = table.stream(onChannel: frame.channel, of: connection.number), stream.isRTCP else { return }
    table.keepAlive(stream.session, at: .now())
    playing[stream.session]?.interleaved?.receive(control: frame.payload)
  }

  /// Ends all sessions and connections.
  func close() -> EventLoopFuture<Void> {
    for session in playing.keys { letGo(session, goodbye: true) }
    let closing = connections.values.map { connection in
      connection.close()
      return connection.channel.closeFuture
    }
    return EventLoopFuture.andAllComplete(closing, on: loop)
  }

  private func keepTime() {
    let now = MediaTime.now()
    // RTCP over UDP comes to the send thread.
    for (session, viewer) in playing {
      guard let id = viewer.viewer, let heard = pipeline.statistics(of: id)?.lastHeard, heard > viewer.lastHeard else {
        continue
      }
      playing[session]?.lastHeard = heard
      table.keepAlive(session, at: heard)
    }
    for session in table.expire(at: now) { end(session, goodbye: true) }
    let used = Set(table.sessions.values.map(\.connection))
    for connection in connections.values {
      let hasSession = used.contains(connection.number)
      guard let complaint = connection.complaint(at: now, hasSession: hasSession, configuration) else { continue }
      noteClosing(of: connection, complaint)
      connection.close()
    }
    countSessions()
  }

  private func countSessions() {
    statistics.sessions = table.sessions.count
    statistics.playing = playing.count
  }

  // MARK: Requests

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
      connection.user = user
      let time = isLogin ? failedLogins.noteSuccess(from: peer, at: now) : now
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
      if !connection.isClosed { body(service, connection) }
    }
  }

  private func carryOut(_ request: Request, on connection: Connection, at now: MediaTime) {
    var answer = table.answer(request, on: connection.table, at: now)
    if answer.refusal != nil { noteRefusal() }
    defer { countSessions() }
    switch answer.effect {
    case .none, .release: break
    case .describe(_, let base): answer.response.setDescription(description(for: connection), contentBase: base)
    case .setup(let session, _, let transport):
      setUp(session, transport, request, &answer.response, on: connection)
    case .play(let session, let urls):
      return play(session, url: urls[0] ?? "", request, answer.response, on: connection)
    case .pause(let session): letGo(session)
    case .teardown(let session): end(session)
    }
    connection.answered(answer.response)
  }

  private func description(for connection: Connection) -> String {
    // The key goes along, so that nobody else may read it.
    let stream = connection.table.scheme == .rtsps ? keys.offer(on: connection.number) : nil
    var description = pipeline.sessionDescription(
      forGuestsAt: connection.localAddress ?? .loopback, name: configuration.path, sessionID: sessionID, stream: stream)
    if let stream { description.keyManagement = [keys.message(for: stream)] }
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
      keys.end(session)
      response = Response(status, to: request)
    }
    guard let server = serverSide(of: transport, for: connection) else { return refuse(.unsupportedTransport) }
    guard transport.profile.isProtected else {
      keys.end(session)
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
    guard let stream = keys.take(for: session, on: connection.number, controlKey: controlKey) else {
      return refuse(.unsupportedTransport)
    }
    let ssrc = transport.delivery == .multicast ? nil : stream.ssrc
    response.setTransport(TransportAnswer(transport, server: server, ssrc: ssrc))
    response.headers["KeyMgmt"] = KeyManagementField(url: request.uri, data: keys.message(for: stream)).description
  }

  /// This side of a way to a client; nil where it cannot be had.
  private func serverSide(
    of transport: SelectedTransport, for connection: Connection
  ) -> TransportAnswer.Server? {
    switch transport.delivery {
    case .interleaved: return .interleaved
    case .multicast: return group.server
    case .udp:
      guard let address = try? SocketAddress(host: connection.client, port: 1),
        let ports = try? pipeline.guestPorts(for: address)
      else { return nil }
      return .udp(PortPair(rtp: ports.media, rtcp: ports.control), client: connection.table.client)
    }
  }

  // MARK: Playing

  private func play(
    _ session: SessionIdentifier, url: String, _ request: Request, _ response: Response, on connection: Connection
  ) {
    guard let entry = table[session], let transport = entry.transports[0], playing[session] == nil else {
      // It plays already and goes on.
      return connection.answered(response)
    }
    lastPlay += 1
    let number = lastPlay
    let key = keys[session]
    let name = transport.viewerName(of: connection, isProtected: key != nil)
    var viewer = Playing(number: number, connection: entry.connection, transport: transport, name: name)
    viewer.pending = PendingPlay(response: response, url: url, connection: connection)
    let service = NIOLoopBound(self, eventLoop: loop)
    let loop = loop
    do {
      switch transport.delivery {
      case .multicast:
        try group.join()
      case .udp(let ports):
        endFormer(of: entry)
        let address = try SocketAddress(host: connection.client, port: ports.rtp)
        let control = ports.rtcp == ports.rtp ? nil : try SocketAddress(host: connection.client, port: ports.rtcp)
        viewer.viewer = try pipeline.admit(
          .datagrams(to: address, control: control, timeToLive: nil),
          name: name, stream: key?.stream, controlKey: key?.controlKey,
          // Whoever asks for AVPF has read what it offers; others know packets that come again as they were.
          hasRetransmissionStream: transport.profile == .avpf
        ) { start in
          loop.execute { service.value.started(session, number, start) }
        }
      case .interleaved(let channels):
        guard connections[entry.connection]?.channel.isWritable == true else {
          // What waits there for a viewer that takes nothing must not grow by playing again.
          noteRefusal()
          return connection.answered(Response(.serviceUnavailable, to: request))
        }
        let interleaved = try InterleavedTransport(media: channels.rtp, control: channels.rtcp) { bytes in
          loop.execute { service.value.write(bytes, for: session, number) }
        }
        viewer.interleaved = interleaved
        viewer.viewer = try pipeline.admit(
          .interleaved(interleaved),
          name: name, stream: key?.stream, controlKey: key?.controlKey
        ) { start in
          loop.execute { service.value.started(session, number, start) }
        }
      }
    } catch {
      noteRefusal()
      table.end(session)
      keys.end(session)
      return connection.answered(Response(.serviceUnavailable, to: request))
    }
    playing[session] = viewer
    events.add(.came(viewer: name))
    countSessions()
    if transport.delivery == .multicast { return started(session, number, nil) }
    // Where the camera gives no picture the answer comes all the same.
    loop.scheduleTask(in: Self.startPatience) { service.value.started(session, number, nil) }
  }

  /// Ends the session of a player that was at the same port and has vanished: `session` is of one that has started
  /// again, and every packet, and in the end a BYE, would come to it twice.
  private func endFormer(of session: ServerSession) {
    let former = playing.keys.filter { other in
      other != session.identifier && table[other]?.client == session.client
        && playing[other]?.transport.port == session.transports[0]?.port
    }
    for other in former {
      table.end(other)
      end(other)
    }
  }

  /// The first packet of a session is about to leave, or the answer cannot wait for it any longer.
  private func started(_ session: SessionIdentifier, _ number: UInt64, _ start: StreamStart?) {
    guard playing[session]?.number == number, var pending = playing[session]?.pending.take() else { return }
    pending.response.setRTPInformation([
      RTPInformation(url: pending.url, sequenceNumber: start?.sequenceNumber, timestamp: start?.timestamp)
    ])
    pending.connection.answered(pending.response)
    let early = playing[session]?.early ?? []
    playing[session]?.early = []
    for bytes in early { write(bytes, for: session, number) }
  }

  /// Writes interleaved packets of a session.
  private func write(_ bytes: InterleavedBytes, for session: SessionIdentifier, _ number: UInt64) {
    guard let viewer = playing[session], viewer.number == number, let interleaved = viewer.interleaved,
      let connection = connections[viewer.connection]
    else { return }
    guard viewer.pending == nil else {
      playing[session]?.early.append(bytes)
      return
    }
    packets.write(bytes, to: connection, of: interleaved)
  }

  /// Stops sending to a session, which is over.
  private func end(_ session: SessionIdentifier, goodbye: Bool = false) {
    letGo(session, goodbye: goodbye)
    keys.end(session)
  }

  /// Stops sending to a session.
  private func letGo(_ session: SessionIdentifier, goodbye: Bool = false) {
    guard let viewer = playing.removeValue(forKey: session) else { return }
    let figures = viewer.viewer.flatMap { pipeline.statistics(of: $0) }
    events.add(.left(viewer: viewer.name, after: .now() - viewer.since, figures))
    if let id = viewer.viewer { pipeline.remove(id, goodbye: goodbye) } else { group.leave() }
    // A request that waits for its first packet gets its answer.
    if let pending = viewer.pending { pending.connection.answered(pending.response) }
  }
}
