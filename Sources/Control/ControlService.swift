import Glibc
import Hummingbird
import HummingbirdCore
import Logging
import Media
import NIOCore
import NIOHTTP1
import NIOPosix
import Synchronization

/// The accept loop, and Hummingbird on each connection.
struct ControlService: Sendable {
  private let http: HTTP1Channel
  private let limits: ControlServer.Limits
  /// The largest header of a request, in bytes.
  private static let headerLimit = 8192
  private let permittedGroup: UInt32
  // Errors go to the client; nothing of a control connection is worth a line in the journal.
  private let logger = Logger(label: "control", factory: { _ in SwiftLogNoOpLogHandler() })

  init(api: ControlAPI, limits: ControlServer.Limits, permittedGroup: UInt32) {
    self.limits = limits
    self.permittedGroup = permittedGroup
    let responder = api.responder()
    let logger = logger
    http = HTTP1Channel(
      responder: { request, writer, channel in
        let context = BasicRequestContext(source: ApplicationRequestContextSource(channel: channel, logger: logger))
        let response = try await responder.respond(to: request, context: context)
        try await writer.write(response: response.head, body: response.body)
      },
      configuration: HTTP1Channel.Configuration(
        httpDecoderConfiguration: .init(
          maxHeaderFieldSize: 4096, maxHeaderListSize: Self.headerLimit, maxHeaderFieldCount: 64)))
  }

  /// Serves until its task is cancelled; closes and removes the socket. Tells `began` once: 0, or the `errno` for which
  /// it serves nothing.
  func serve(
    _ socket: consuming ListeningSocket, _ group: MultiThreadedEventLoopGroup, began: @Sendable (CInt) -> Void
  ) async {
    let open = ConnectionCount()
    let time = TimeAmount.nanoseconds(limits.requestTime.nanoseconds)
    let (connections, queue) = AsyncStream<HTTP1Channel.Value>.makeStream()
    let bootstrap = ServerBootstrap(group: group)
      .childChannelOption(.allowRemoteHalfClosure, value: true)
      .childChannelInitializer { channel in
        channel.eventLoop.makeCompletedFuture {
          // 2 MB of a body that is too large are read and thrown away, so that its sender gets to read why.
          try channel.pipeline.syncOperations.addHandler(ConnectionLimits(bytes: 2 << 20, time: time))
          if let refusal = try refusal(of: channel, open) {
            try channel.pipeline.syncOperations.addHandler(refusal)
            return channel.eventLoop.makeSucceededVoidFuture()
          }
          return http.setup(channel: channel, logger: logger).map { connection in
            let pipeline = channel.pipeline.syncOperations
            // There is no encoder where the channel was closed meanwhile; thrown, that would drop it unused.
            if let encoder = try? pipeline.handler(type: HTTPResponseEncoder.self) {
              try? pipeline.addHandler(
                UnreadableRequestAnswer(headerLimit: Self.headerLimit), position: .after(encoder))
            }
            guard case .terminated = queue.yield(connection) else { return }
            // Accepted while the listener was closed. NIO traps where a channel like this is dropped unused.
            Task { await http.handle(value: connection, logger: logger) }
            connection.channel.close(promise: nil)
          }
        }.flatMap { $0 }
      }
    let listener: any Channel
    do {
      listener = try await bootstrap.withBoundSocket(socket.descriptor).get()
    } catch {
      began((error as? IOError)?.errnoCode ?? EIO)
      return
    }
    began(0)
    listener.closeFuture.whenComplete { _ in queue.finish() }
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
      listener.close(promise: nil)
    }
    _ = socket
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
  private func refusal(of channel: any Channel, _ open: ConnectionCount) throws -> RefusalHandler? {
    let count = open.count.add(1, ordering: .relaxed).newValue
    channel.closeFuture.whenComplete { _ in open.count.subtract(1, ordering: .relaxed) }
    let peer = try channel.pipeline.syncOperations.withUnsafeTransportIfAvailable(of: NIOBSDSocket.Handle.self) {
      PeerCredentials(socket: $0)
    }
    let refusal: RefusalHandler
    if let peer = peer ?? nil, peer.mayUse(group: permittedGroup) {
      guard count > limits.connections else { return nil }
      refusal = RefusalHandler(
        status: "503 Service Unavailable",
        ControlFailure(
          "more than \(limits.connections) connections at a time: try again in a moment", kind: .temporary,
          field: "connections", limit: "\(limits.connections)"))
    } else {
      refusal = RefusalHandler(
        status: "403 Forbidden",
        ControlFailure(
          "only the owner of the control socket and the members of its group may use it", kind: .noPermission))
    }
    // Those that are to be told why wait for their own request, so their number has a limit too.
    if count > 4 * limits.connections { channel.close(promise: nil) }
    return refusal
  }
}

/// How many connections are open.
private final class ConnectionCount: Sendable {
  let count = Atomic(0)
}

/// Tells a client that it is not served and why, once it has asked: one that is closed before could not read it.
private final class RefusalHandler: ChannelInboundHandler {
  typealias InboundIn = ByteBuffer
  typealias OutboundOut = ByteBuffer

  private var answer: ByteBuffer?

  init(status: String, _ failure: ControlFailure) {
    let body = ControlJSON.encode(failure)
    var answer = ByteBuffer(
      string: "HTTP/1.1 \(status)\r\ncontent-type: application/json\r\ncontent-length: \(body.count)\r\n"
        + "connection: close\r\n\r\n")
    answer.writeBytes(body)
    self.answer = answer
  }

  func channelRead(context: ChannelHandlerContext, data: NIOAny) {
    guard let answer = answer.take() else { return }
    context.writeAndFlush(wrapOutboundOut(answer), promise: nil)
    context.close(promise: nil)
  }

  func userInboundEventTriggered(context: ChannelHandlerContext, event: Any) {
    if event as? ChannelEvent == .inputClosed { context.close(promise: nil) }
    context.fireUserInboundEventTriggered(event)
  }
}
