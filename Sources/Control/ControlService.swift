import Credentials
import Glibc
import HTTPTypes
import Hummingbird
import HummingbirdCore
import Listening
import Logging
import Media
import NIOCore
import NIOHTTP1
import NIOPosix
import TLS

/// The accept loop, and Hummingbird on each connection.
struct ControlService: Sendable {
  /// Who is let in.
  enum Admission: Sendable {
    /// By a Unix socket: its owner, and the members of this group, who may do everything. What they change is told here.
    case group(gid_t, ControlEvents)
    /// Over the network: whom this says.
    case network(RequestAuthenticator)
    /// Over the network in the clear, for reading: whom this says.
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
  // Errors go to the client; nothing of a control connection is worth a line in the journal.
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
        context.events = admission.events
        context.isForAnyPage = RequestOrigin.isOfNeighbour(request)
        var refusal: Refusal?
        switch admission {
        case .group:
          context.requester = try await channel.localRequester(of: request)
          context.place = "the control socket"
          context.roleOfNow = { channel.isActive ? .control : nil }
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
          context.roleOfNow = {
            let role = role()
            channel.unlessActive { authenticator.forget(question.connection) }
            return channel.isActive ? role : nil
          }
        case .reading(let authenticator):
          let question = try channel.question(of: request)
          // Whoever forwards a port of this machine passes on any Host, and no sign of it.
          context.mayGetKeys = question.isFromHere && !authenticator.hasUsers
          let answer = authenticator.check(question, at: .now())
          channel.unlessActive { authenticator.forget(question.connection) }
          context.peer.user = answer.user
          refusal = try await channel.wait(for: answer)
          context.take(answer, of: question)
          if refusal == nil { refusal = context.renew(authenticator.roleOfNow(for: question)) }
          context.roleOfNow = { channel.isActive ? authenticator.roleOfNow(for: question) : nil }
        }
        let response =
          if let refusal { refusal.response } else { try await responder.respond(to: request, context: context) }
        // What answers HEAD has no body (RFC 9110 section 9.3.2), a refusal neither: it would be taken for the next answer.
        try await writer.write(
          response: response.head, body: request.method == .head ? ResponseBody() : response.body)
      },
      configuration: HTTP1Channel.Configuration(
        httpDecoderConfiguration: .init(
          maxHeaderFieldSize: 4096, maxHeaderListSize: Self.headerLimit, maxHeaderFieldCount: 64)))
  }

  /// How the client of `channel` is connected.
  private static func peer(of channel: any Channel, _ admission: Admission) -> ViewerPeer {
    let client = channel.remoteAddress
    return switch admission {
    case .group: ViewerPeer(.unix)
    case .network: ViewerPeer(.https, address: client?.ipAddress, port: client?.port, isEncrypted: true)
    case .reading: ViewerPeer(.http, address: client?.ipAddress, port: client?.port)
    }
  }

  /// Sets up connections, within TLS where there is a context for it. They wait for ``serve(_:)``.
  func bootstrap(_ group: MultiThreadedEventLoopGroup, tls: ServerContext? = nil) -> ServerBootstrap {
    let time = TimeAmount.nanoseconds(limits.requestTime.nanoseconds)
    return ServerBootstrap(group: group)
      .childChannelOption(.allowRemoteHalfClosure, value: true)
      .childChannelInitializer { channel in
        channel.eventLoop.makeCompletedFuture {
          let pipeline = channel.pipeline.syncOperations
          if let tls { try pipeline.addHandler(TLSHandler(tls)) }
          try pipeline.addHandler(OutputProgress())
          // 2 MB of a body that is too large are read and thrown away, so that its sender gets to read why.
          try pipeline.addHandler(ConnectionLimits(bytes: 2 << 20, time: time))
          if let refusal = try refusal(of: channel) {
            try pipeline.addHandler(refusal)
            return channel.eventLoop.makeSucceededVoidFuture()
          }
          return http.setup(channel: channel, logger: logger).map { connection in
            let pipeline = channel.pipeline.syncOperations
            // There is no decoder where the channel was closed meanwhile; thrown, that would drop it unused.
            if let decoder = try? pipeline.handler(type: ByteToMessageHandler<HTTPRequestDecoder>.self) {
              try? pipeline.addHandlers(
                UnreadableRequestAnswer(headerLimit: Self.headerLimit), AnswerEnd(), position: .after(decoder))
            }
            guard case .terminated = queue.yield(connection) else { return }
            // Accepted while the listener was closed. NIO traps where a channel like this is dropped unused.
            Task { await http.handle(value: connection, logger: logger) }
            connection.channel.close(promise: nil)
          }
        }.flatMap { $0 }
      }
  }

  /// Begins to listen; what comes waits for ``serve(_:)``. Ends `group` where that fails.
  ///
  /// - Throws: `ListenError`; then nothing listens.
  func open(
    _ listeners: [TCPListener], _ group: MultiThreadedEventLoopGroup, tls: ServerContext? = nil, service: String
  ) throws -> [(channel: any Channel, listener: TCPListener)] {
    var open: [(channel: any Channel, listener: TCPListener)] = []
    do {
      for listener in listeners {
        let bootstrap = bootstrap(group, tls: tls).serverChannelOption(.backlog, value: 64)
          // A client that floods gets its turn for so much at a time.
          .childChannelOption(.maxMessagesPerRead, value: 1)
          // What the kernel takes without sending it, in bytes (tcp(7)): a slow viewer is to get the newest pictures, not
          // those that lie in its socket.
          .childChannelOption(
            ChannelOptions.socket(SocketOptionLevel(IPPROTO_TCP), SocketOptionName(TCP_NOTSENT_LOWAT)), value: 64 << 10)
        if let opened = try listener.open(bootstrap, service: service) { open.append(opened) }
      }
    } catch {
      // What fails to close is closed already; why it does not listen is what is told.
      for entry in open { try? entry.channel.close().wait() }
      try? group.syncShutdownGracefully()
      throw error
    }
    return open
  }

  /// Serves what comes by these listeners until its task is cancelled; closes them. To be called once.
  func serve(_ listeners: [any Channel]) async {
    guard let loop = listeners.first?.eventLoop else { return }
    EventLoopFuture.andAllComplete(listeners.map(\.closeFuture), on: loop).whenComplete { _ in queue.finish() }
    await withTaskCancellationHandler {
      // A task that is not cancelled, which would end the loop with connections left in the queue.
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
      // Hummingbird waits for what the client has begun, which may never end.
      connection.channel.close(promise: nil)
    }
  }

  /// Why this connection is not served; counts it in any case.
  private func refusal(of channel: any Channel) throws -> RefusalHandler? {
    let network: [UInt8]
    switch admission {
    case .group: network = []
    // One that has gone already has no address, and does no harm.
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
    // Those that are to be told why wait for their own request, so their number has a limit too.
    if count.all > 4 * limits.connections { channel.close(promise: nil) }
    if case .group(let group, _) = admission {
      let peer = try channel.pipeline.syncOperations.withUnsafeTransportIfAvailable(of: NIOBSDSocket.Handle.self) {
        PeerCredentials(socket: $0)
      }
      guard let peer = peer ?? nil, peer.mayUse(group: group) else { return .stranger }
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
      status: status, retryAfter: Refusal.retryAfter,
      ControlFailure(
        "\(reason): try again in a moment", kind: .temporary, field: "connections", limit: "\(limit)"))
  }

  /// Counts a stream as long as `channel` is open; why it is not served, in which case it is not counted.
  private static func admitStream(
    on channel: any Channel, _ streams: ConnectionCount, _ limits: ControlServer.Limits
  ) -> Refusal? {
    let network = channel.peerAddress?.network ?? []
    let count = streams.add(network)
    let all = ControlServer.Limits.streams(of: limits.connections)
    let ofAddress = ControlServer.Limits.streams(of: limits.connectionsPerAddress)
    let refusal: Refusal? =
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
  /// Takes over who was let in.
  fileprivate mutating func take(_ answer: RequestAuthenticator.Answer, of question: RequestAuthenticator.Question) {
    if case .granted(let requester, _) = answer { self.requester = requester }
    place = question.client
  }

  /// Goes on with the role of now, since the answer may have waited; refuses where there is none any more.
  fileprivate mutating func renew(_ role: Role?) -> Refusal? {
    guard let role else { return .revoked }
    requester = Requester(name: requester.name, role: role, roleCommand: requester.roleCommand)
    return nil
  }
}

extension Channel {
  /// The client's address; nil for a Unix socket, and for one that has gone.
  fileprivate var peerAddress: PeerAddress? { remoteAddress?.ipAddress.flatMap { PeerAddress($0) } }
}

extension Channel {
  /// Who asks for what.
  ///
  /// - Throws: where the client has gone.
  fileprivate func question(of request: Request) throws -> RequestAuthenticator.Question {
    guard let peer = peerAddress else { throw CancellationError() }
    return RequestAuthenticator.Question(
      request: request, client: remoteAddress?.ipAddress ?? "", peer: peer, connection: ObjectIdentifier(self))
  }

  /// Does what is to be done once the connection has ended, where that was while it was being noted.
  fileprivate func unlessActive(_ body: () -> Void) {
    if !isActive { body() }
  }

  /// Who is at the other end of a Unix socket, as the kernel tells it. Whoever changes nothing stays unnamed.
  fileprivate func localRequester(of request: Request) async throws -> Requester {
    guard request.method != .get, request.method != .head else { return .local("somebody") }
    let peer = try await eventLoop.submit { [self] in
      try pipeline.syncOperations.withUnsafeTransportIfAvailable(of: NIOBSDSocket.Handle.self) {
        PeerCredentials(socket: $0)
      }
    }.get()
    return .local(peer.flatMap { $0 }.map { "uid \($0.user), pid \($0.process)" } ?? "somebody")
  }

  /// Why a request is not carried out; nil where it is. Waits as long as the answer is to wait.
  ///
  /// - Throws: where the connection ends meanwhile, or the server.
  fileprivate func wait(for answer: RequestAuthenticator.Answer) async throws -> Refusal? {
    let (refusal, time): (Refusal?, MediaTime) =
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
