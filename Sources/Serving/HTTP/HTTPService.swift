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
struct HTTPService: Sendable {
  private let http: HTTP1Channel
  private let limits: HTTPServer.Limits
  private let access: any AccessPolicy
  private let open: ConnectionRoom
  private let connections: AsyncStream<HTTP1Channel.Value>
  private let queue: AsyncStream<HTTP1Channel.Value>.Continuation
  /// The largest header of a request, in bytes.
  private static let headerLimit = 8192
  // Errors go to the client; nothing on a control connection is worth a line in the journal.
  private let logger = Logger(label: "control", factory: { _ in SwiftLogNoOpLogHandler() })

  init(api: ControlAPI, limits: HTTPServer.Limits, access: any AccessPolicy) {
    self.limits = limits
    self.access = access
    open = ConnectionRoom(
      limits.connections, ofNetwork: limits.connectionsPerAddress, closesOthers: access.closesIdleClients)
    (connections, queue) = AsyncStream.makeStream()
    let responder = api.responder()
    let logger = logger
    let streams = ConnectionCount()
    http = HTTP1Channel(
      responder: { request, writer, channel in
        var context = ControlContext(source: ApplicationRequestContextSource(channel: channel, logger: logger))
        context.peer = access.peer(of: channel)
        context.admitStream = { Self.admitStream(on: channel, streams, limits) }
        context.keepUnsent = { await channel.keepUnsent($0) }
        context.events = access.events
        context.isForAnyPage = RequestOrigin.isOfNeighbour(request)
        let refusal = try await access.admit(request, on: channel, &context)
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

  /// Sets up connections, within TLS if there is a context for it. The connections wait for ``serve(_:)``.
  func bootstrap(_ group: MultiThreadedEventLoopGroup, tls: ServerContext? = nil) -> ServerBootstrap {
    let time = TimeAmount.nanoseconds(limits.requestTime.nanoseconds)
    return ServerBootstrap(group: group)
      .childChannelOption(.allowRemoteHalfClosure, value: true)
      .childChannelInitializer { channel in
        channel.eventLoop.makeCompletedFuture {
          let pipeline = channel.pipeline.syncOperations
          if let tls { try pipeline.addHandler(TLSHandler(tls)) } else { try pipeline.addHandler(OutputEnd()) }
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
                UnreadableRequestAnswer(headerLimit: Self.headerLimit), answerEnd(of: channel),
                position: .after(decoder))
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

  /// Returns the handler that notes the requests of a connection.
  private func answerEnd(of channel: any Channel) -> AnswerEnd {
    let identity = ObjectIdentifier(channel)
    return AnswerEnd(onRequest: { open.begin(identity) }, onAnswer: { open.end(identity, at: .now()) })
  }

  /// Returns a refusal if this connection is not served; counts the connection in any case.
  private func refusal(of channel: any Channel) throws -> RefusalHandler? {
    let identity = ObjectIdentifier(channel)
    let room = open.add(identity, from: access.network(of: channel), at: .now()) {
      // At once: a client that withholds its TLS `close_notify` would keep its place for seconds.
      channel.triggerUserOutboundEvent(TLSHandler.CloseAtOnce(), promise: nil)
      channel.close(promise: nil)
    }
    channel.closeFuture.whenComplete { _ in
      open.remove(identity)
      access.forget(identity)
    }
    // A refused connection waits for its own request before it gets the reason, so the number of refused connections
    // has a limit too.
    if open.count > 4 * limits.connections { channel.close(promise: nil) }
    if let refusal = try access.refusal(of: channel) { return refusal }
    switch room {
    case .admitted: return nil
    case .full:
      return turnAway(
        "503 Service Unavailable", "more than \(limits.connections) connections at a time", limits.connections)
    case .networkIsFull:
      let limit = limits.connectionsPerAddress
      return turnAway("429 Too Many Requests", "more than \(limit) connections at a time from one address", limit)
    }
  }

  private func turnAway(_ status: String, _ reason: String, _ limit: Int) -> RefusalHandler {
    access.events.turnedAway()
    return RefusalHandler(
      status: status, retryAfter: HTTPRefusal.retryAfter,
      ControlFailure(
        "\(reason): try again in a moment", kind: .temporary, field: "connections", limit: "\(limit)"))
  }

  /// Counts a stream as long as `channel` is open. Returns a refusal if the stream is not served; then it is not
  /// counted.
  private static func admitStream(
    on channel: any Channel, _ streams: ConnectionCount, _ limits: HTTPServer.Limits
  ) -> HTTPRefusal? {
    let network = channel.peerAddress?.network ?? []
    let count = streams.add(network)
    let all = HTTPServer.Limits.streams(of: limits.connections)
    let ofAddress = HTTPServer.Limits.streams(of: limits.connectionsPerAddress)
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
}
