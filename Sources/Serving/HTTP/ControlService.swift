import Glibc
import HTTPTypes
import Hummingbird
import HummingbirdCore
import Logging
import NIOCore
import NIOHTTP1
import NIOPosix
import Platform
import Streaming
import TLS

/// Accepts connections and serves each with Hummingbird.
struct ControlService: Sendable {
  /// The clients that are admitted.
  enum Admission: Sendable {
    /// A Unix socket: its owner and the members of this group may do everything. Their changes are reported here.
    case group(gid_t, ControlEvents)
    /// The encrypted network: the authenticator decides.
    case network(RequestAuthenticator)
    /// The network in the clear, for reading: the authenticator decides.
    case reading(ReadingAuthenticator)

    var events: ControlEvents {
      switch self {
      case .group(_, let events): events
      case .network(let authenticator): authenticator.events
      case .reading(let authenticator): authenticator.events
      }
    }
  }

  private let http: HTTP1Channel
  private let limits: ControlServer.Limits
  private let admission: Admission
  private let open = ConnectionCount()
  private let connections: AsyncStream<HTTP1Channel.Value>
  private let queue: AsyncStream<HTTP1Channel.Value>.Continuation
  /// The largest header of a request, in bytes.
  private static let headerLimit = 8192
  // Errors go to the client; nothing on a control connection is worth a line in the journal.
  private let logger = Logger(label: "control", factory: { _ in SwiftLogNoOpLogHandler() })

  init(api: ControlAPI, limits: ControlServer.Limits, admission: Admission) {
    self.limits = limits
    self.admission = admission
    (connections, queue) = AsyncStream.makeStream()
    let responder = api.responder()
    let logger = logger
    let streams = ConnectionCount()
    http = HTTP1Channel(
      responder: { request, writer, channel in
        var context = ControlContext(source: ApplicationRequestContextSource(channel: channel, logger: logger))
        context.peer = Self.peer(of: channel, admission)
        context.admitStream = { Self.admitStream(on: channel, streams, limits) }
        context.keepUnsent = { await channel.keepUnsent($0) }
        context.events = admission.events
        context.isForAnyPage = RequestOrigin.isOfNeighbour(request)
        var refusal: HTTPRefusal?
        switch admission {
        case .group:
          context.requester = try await channel.localRequester(of: request)
          context.place = "the control socket"
          context.roleOfNow = { channel.isActive ? .control : nil }
          context.roleAfterwards = { .control }
        case .network(let authenticator):
          let question = try channel.question(of: request)
          let count = authenticator.changeCount
          let answer = authenticator.check(question, at: .now())
          channel.unlessActive { authenticator.forget(question.connection) }
          context.peer.user = answer.user
          context.take(answer, of: question)
          let role = authenticator.roleOfNow(for: question, context.requester.role, since: count)
          refusal = try await channel.wait(for: answer)
          if refusal == nil { refusal = context.renew(role()) }
          if request.uri.queryParameters["token"] != nil { context.isForAnyPage = true }
          let roleOfNow: @Sendable () -> Role? = {
            let role = role()
            channel.unlessActive { authenticator.forget(question.connection) }
            return role
          }
          context.roleAfterwards = roleOfNow
          context.roleOfNow = { roleOfNow().flatMap { channel.isActive ? $0 : nil } }
        case .reading(let authenticator):
          let question = try channel.question(of: request)
          // A forwarded port of this machine passes on any Host without a sign of it.
          context.mayGetKeys = question.isFromHere && !authenticator.hasUsers
          let answer = authenticator.check(question, at: .now())
          channel.unlessActive { authenticator.forget(question.connection) }
          context.peer.user = answer.user
          refusal = try await channel.wait(for: answer)
          context.take(answer, of: question)
          if refusal == nil { refusal = context.renew(authenticator.roleOfNow(for: question)) }
          context.roleOfNow = { channel.isActive ? authenticator.roleOfNow(for: question) : nil }
          context.roleAfterwards = { question.isFromHere ? Requester.unknown.role : nil }
        }
        let response =
          if let refusal { refusal.response } else { try await responder.respond(to: request, context: context) }
        // An answer to HEAD has no body (RFC 9110 section 9.3.2), and neither has a refusal: the client would take it
        // for the next answer.
        try await writer.write(
          response: response.head, body: request.method == .head ? ResponseBody() : response.body)
      },
      configuration: HTTP1Channel.Configuration(
        httpDecoderConfiguration: .init(
          maxHeaderFieldSize: 4096, maxHeaderListSize: Self.headerLimit, maxHeaderFieldCount: 64)))
  }

  /// Returns the transport and address of the client of `channel`.
  private static func peer(of channel: any Channel, _ admission: Admission) -> ViewerPeer {
    let client = channel.remoteAddress
    return switch admission {
    case .group: ViewerPeer(.unix)
    case .network: ViewerPeer(.https, address: client?.ipAddress, port: client?.port, isEncrypted: true)
    case .reading: ViewerPeer(.http, address: client?.ipAddress, port: client?.port)
    }
  }

  /// Sets up connections, within TLS if there is a context for it. The connections wait for ``serve(_:)``.
  func bootstrap(_ group: MultiThreadedEventLoopGroup, tls: ServerContext? = nil) -> ServerBootstrap {
    let time = TimeAmount.nanoseconds(limits.requestTime.nanoseconds)
    return ServerBootstrap(group: group)
      .childChannelOption(.allowRemoteHalfClosure, value: true)
      .childChannelInitializer { channel in
        channel.eventLoop.makeCompletedFuture {
          let pipeline = channel.pipeline.syncOperations
          if let tls { try pipeline.addHandler(TLSHandler(tls)) }
          try pipeline.addHandler(OutputProgress())
          // 2 MB of a body that is too large are read and discarded, so that its sender can read the reason.
          try pipeline.addHandler(ConnectionLimits(bytes: 2 << 20, time: time))
          if let refusal = try refusal(of: channel) {
            try pipeline.addHandler(refusal)
            return channel.eventLoop.makeSucceededVoidFuture()
          }
          return http.setup(channel: channel, logger: logger).map { connection in
            let pipeline = channel.pipeline.syncOperations
            // There is no decoder if the channel was closed meanwhile; a thrown error would drop the channel unused.
            if let decoder = try? pipeline.handler(type: ByteToMessageHandler<HTTPRequestDecoder>.self) {
              try? pipeline.addHandlers(
                UnreadableRequestAnswer(headerLimit: Self.headerLimit), AnswerEnd(), position: .after(decoder))
            }
            guard case .terminated = queue.yield(connection) else { return }
            // Accepted while the listener was closed. NIO traps if such a channel is dropped unused.
            Task { await http.handle(value: connection, logger: logger) }
            connection.channel.close(promise: nil)
          }
        }.flatMap { $0 }
      }
  }

  /// Starts to listen; connections wait for ``serve(_:)``. Shuts `group` down on failure.
  ///
  /// - Throws: `ListenError`; then nothing listens.
  func open(
    _ listeners: [TCPListener], _ group: MultiThreadedEventLoopGroup, tls: ServerContext? = nil, service: String
  ) throws -> [(channel: any Channel, listener: TCPListener)] {
    var open: [(channel: any Channel, listener: TCPListener)] = []
    do {
      for listener in listeners {
        let bootstrap = bootstrap(group, tls: tls).serverChannelOption(.backlog, value: 64)
          // Gives a client that floods the server only this much at a time.
          .childChannelOption(.maxMessagesPerRead, value: 1)
          // The bytes that the kernel accepts before it sends them (tcp(7)): a slow viewer gets the newest pictures
          // instead of those that wait in its socket.
          .childChannelOption(
            ChannelOptions.socket(SocketOptionLevel(IPPROTO_TCP), SocketOptionName(TCP_NOTSENT_LOWAT)), value: 64 << 10)
        if let opened = try listener.open(bootstrap, service: service) { open.append(opened) }
      }
    } catch {
      // A channel that fails to close is closed already; the reason why nothing listens is reported.
      for entry in open { try? entry.channel.close().wait() }
      try? group.syncShutdownGracefully()
      throw error
    }
    return open
  }

  /// Serves connections of these listeners until its task is cancelled; then closes the listeners. Call it once.
  func serve(_ listeners: [any Channel]) async {
    guard let loop = listeners.first?.eventLoop else { return }
    EventLoopFuture.andAllComplete(listeners.map(\.closeFuture), on: loop).whenComplete { _ in queue.finish() }
    await withTaskCancellationHandler {
      // A separate task, which is not cancelled: cancellation would end the loop with connections left in the queue.
      await Task {
        await withDiscardingTaskGroup { tasks in
          for await connection in connections {
            tasks.addTask { await serve(connection) }
          }
          tasks.cancelAll()
        }
      }.value
    } onCancel: {
      for listener in listeners { listener.close(promise: nil) }
    }
  }

  private func serve(_ connection: HTTP1Channel.Value) async {
    await withTaskCancellationHandler {
      await http.handle(value: connection, logger: logger)
    } onCancel: {
      // Hummingbird waits for the end of the client's request, which may never come.
      connection.channel.close(promise: nil)
    }
  }

  /// Returns a refusal if this connection is not served; counts the connection in any case.
  private func refusal(of channel: any Channel) throws -> RefusalHandler? {
    let network: [UInt8]
    switch admission {
    case .group: network = []
    // A peer that has already left has no address and does no harm.
    case .network, .reading: network = channel.peerAddress?.network ?? []
    }
    let count = open.add(network)
    let identity = ObjectIdentifier(channel)
    channel.closeFuture.whenComplete { _ in
      open.remove(network)
      switch admission {
      case .group: break
      case .network(let authenticator): authenticator.forget(identity)
      case .reading(let authenticator): authenticator.forget(identity)
      }
    }
    // A refused connection waits for its own request before it gets the reason, so the number of refused connections
    // has a limit too.
    if count.all > 4 * limits.connections { channel.close(promise: nil) }
    if case .group(let group, _) = admission {
      let peer = try channel.pipeline.syncOperations.withUnsafeTransportIfAvailable(of: NIOBSDSocket.Handle.self) {
        PeerCredentials(socket: $0)
      }
      guard let peer = peer ?? nil, peer.mayUse(group: group) else { return .anotherUser }
    }
    if count.all > limits.connections {
      return turnAway(
        "503 Service Unavailable", "more than \(limits.connections) connections at a time", limits.connections)
    }
    let perAddress = limits.connectionsPerAddress
    if !network.isEmpty, count.ofNetwork > perAddress {
      return turnAway(
        "429 Too Many Requests", "more than \(perAddress) connections at a time from one address", perAddress)
    }
    return nil
  }

  private func turnAway(_ status: String, _ reason: String, _ limit: Int) -> RefusalHandler {
    admission.events.turnedAway()
    return RefusalHandler(
      status: status, retryAfter: HTTPRefusal.retryAfter,
      ControlFailure(
        "\(reason): try again in a moment", kind: .temporary, field: "connections", limit: "\(limit)"))
  }

  /// Counts a stream as long as `channel` is open. Returns a refusal if the stream is not served; then it is not
  /// counted.
  private static func admitStream(
    on channel: any Channel, _ streams: ConnectionCount, _ limits: ControlServer.Limits
  ) -> HTTPRefusal? {
    let network = channel.peerAddress?.network ?? []
    let count = streams.add(network)
    let all = ControlServer.Limits.streams(of: limits.connections)
    let ofAddress = ControlServer.Limits.streams(of: limits.connectionsPerAddress)
    let refusal: HTTPRefusal? =
      count.all > all
      ? .tooManyStreams(limit: all)
      : !network.isEmpty && count.ofNetwork > ofAddress ? .tooManyStreams(limit: ofAddress) : nil
    if refusal == nil {
      channel.closeFuture.whenComplete { _ in streams.remove(network) }
    } else {
      streams.remove(network)
    }
    return refusal
  }
}

extension ControlContext {
  /// Takes over the admitted client.
  fileprivate mutating func take(_ answer: RequestAuthenticator.Answer, of question: RequestAuthenticator.Question) {
    if case .granted(let requester, _) = answer { self.requester = requester }
    place = question.client
  }

  /// Applies the current role, since the answer may have waited; refuses if there is none any more.
  fileprivate mutating func renew(_ role: Role?) -> HTTPRefusal? {
    guard let role else { return .revoked }
    requester = Requester(
      name: requester.name, role: role, roleCommand: requester.roleCommand, hasLoggedIn: requester.hasLoggedIn)
    return nil
  }
}

extension Channel {
  /// Keeps at most so many unsent bytes in the kernel, and so many here.
  fileprivate func keepUnsent(_ bytes: Int) async {
    // A Unix socket has no such option: there this program's own part counts. A channel that has closed needs neither.
    let option = ChannelOptions.socket(SocketOptionLevel(IPPROTO_TCP), SocketOptionName(TCP_NOTSENT_LOWAT))
    try? await setOption(option, value: SocketOptionValue(bytes)).get()
    try? await setOption(
      ChannelOptions.writeBufferWaterMark, value: ChannelOptions.Types.WriteBufferWaterMark(low: bytes / 2, high: bytes)
    ).get()
  }

  /// The client's address; nil for a Unix socket and for a client that has left.
  fileprivate var peerAddress: PeerAddress? { remoteAddress?.ipAddress.flatMap { PeerAddress($0) } }
}

extension Channel {
  /// Returns the request together with its client and connection.
  ///
  /// - Throws: an error if the client has left.
  fileprivate func question(of request: Request) throws -> RequestAuthenticator.Question {
    guard let peer = peerAddress else { throw CancellationError() }
    return RequestAuthenticator.Question(
      request: request, client: remoteAddress?.ipAddress ?? "", peer: peer, connection: ObjectIdentifier(self))
  }

  /// Runs `body` if the connection has ended while it was being noted.
  fileprivate func unlessActive(_ body: () -> Void) {
    if !isActive { body() }
  }

  /// Returns the process at the other end of a Unix socket, as the kernel reports it. A client that changes nothing
  /// stays unnamed.
  fileprivate func localRequester(of request: Request) async throws -> Requester {
    guard request.method != .get, request.method != .head else { return .local("somebody") }
    let peer = try await eventLoop.submit { [self] in
      try pipeline.syncOperations.withUnsafeTransportIfAvailable(of: NIOBSDSocket.Handle.self) {
        PeerCredentials(socket: $0)
      }
    }.get()
    return .local(peer.flatMap { $0 }.map { "uid \($0.user), pid \($0.process)" } ?? "somebody")
  }

  /// Returns the refusal of a request; nil if the request is carried out. Waits until the time of the answer.
  ///
  /// - Throws: an error if the connection or the server ends meanwhile.
  fileprivate func wait(for answer: RequestAuthenticator.Answer) async throws -> HTTPRefusal? {
    let (refusal, time): (HTTPRefusal?, Instant) =
      switch answer {
      case .granted(_, let time): (nil, time)
      case .refused(let refusal, let time): (refusal, time)
      }
    let rest = time - .now()
    if rest > .zero {
      try await triggerUserOutboundEvent(AnswerDelay(time: .nanoseconds(rest.nanoseconds))).get()
      try await Task.sleep(nanoseconds: UInt64(rest.nanoseconds))
      guard isActive else { throw CancellationError() }
    }
    return refusal
  }
}
