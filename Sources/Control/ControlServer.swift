import Dispatch
import Hummingbird
import HummingbirdCore
import Logging
public import Media
import NIOCore
import NIOPosix
import Synchronization

/// Serves the control API on a Unix socket, which its owner and group alone may use.
///
/// It runs on one thread of NIO and on those of Swift concurrency, none of which is on a frame's way. Threads inherit the
/// scheduling of the one that starts them: start it before that one becomes a real-time thread.
public final class ControlServer: Sendable {
  /// How much clients may ask for.
  public struct Limits: Sendable {
    /// The largest body of a request in bytes; the rest is never stored.
    public var body = 4096
    /// Until a request must be there and answered, from the connection's start or the last answer.
    public var requestTime = MediaTime(seconds: 10)
    /// Connections at a time; one more is told so and closed.
    public var connections = 16

    /// The usual ones.
    public init() {}
  }

  /// The socket's path.
  public let path: String
  private let group: MultiThreadedEventLoopGroup
  private let ended = DispatchSemaphore(value: 0)
  private let serving: Task<Void, Never>

  /// Begins to listen at `path`; clients are answered from its return on.
  ///
  /// - Throws: ``ControlSocketError``.
  public init(
    path: String = ControlSocket.defaultPath, limits: Limits = Limits(), target: any ControlTarget
  ) throws(ControlSocketError) {
    let socket = try ListeningSocket(path: path, backlog: CInt(limits.connections))
    self.path = path
    group = MultiThreadedEventLoopGroup(numberOfThreads: 1)
    let service = ControlService(
      api: ControlAPI(target: target, bodyLimit: limits.body), limits: limits, permittedGroup: socket.group)
    // A noncopyable value is no closure's to consume: the box is emptied by the one task.
    let box = Mutex<ListeningSocket?>(socket)
    serving = Task { [group, ended] in
      if let socket = box.withLock({ $0.take() }) { await service.serve(socket, group) }
      ended.signal()
    }
  }

  /// Ends all connections and removes the socket; waits until that is done. Not for the threads of Swift concurrency.
  public func stop() {
    serving.cancel()
    ended.wait()
    // So that a second call returns too.
    ended.signal()
    try? group.syncShutdownGracefully()
  }
}

/// The accept loop.
private struct ControlService: Sendable {
  /// A connection, or one that is told why not.
  enum Connection: Sendable {
    case served(HTTP1Channel.Value)
    case refused(any Channel, status: String, ControlFailure)
  }

  let http: HTTP1Channel
  let limits: ControlServer.Limits
  let permittedGroup: UInt32
  // Errors go to the client; nothing of a control connection is worth a line in the journal.
  let logger = Logger(label: "control", factory: { _ in SwiftLogNoOpLogHandler() })

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
        httpDecoderConfiguration: .init(maxHeaderFieldSize: 4096, maxHeaderListSize: 8192, maxHeaderFieldCount: 64)))
  }

  /// Serves until its task is cancelled; closes and removes the socket.
  func serve(_ socket: consuming ListeningSocket, _ group: MultiThreadedEventLoopGroup) async {
    let open = ConnectionCount()
    let time = TimeAmount.nanoseconds(limits.requestTime.nanoseconds)
    let bootstrap = ServerBootstrap(group: group).childChannelOption(.allowRemoteHalfClosure, value: true)
    let listener = try? await bootstrap.bind(socket.descriptor) { channel in
      channel.eventLoop.makeCompletedFuture {
        // 2 MB of a body that is too large are read and thrown away, so that its sender gets to read why.
        try channel.pipeline.syncOperations.addHandler(ConnectionLimits(bytes: 2 << 20, time: time))
        if let refusal = try refusal(of: channel, open) { return channel.eventLoop.makeSucceededFuture(refusal) }
        return http.setup(channel: channel, logger: logger).map { .served($0) }
      }.flatMap { $0 }
    }
    guard let listener else { return }
    await withDiscardingTaskGroup { tasks in
      try? await listener.executeThenClose { connections in
        for try await connection in connections {
          tasks.addTask { await handle(connection) }
        }
      }
      tasks.cancelAll()
    }
    _ = socket
  }

  /// Why this connection is not served; counts it otherwise.
  private func refusal(of channel: any Channel, _ open: ConnectionCount) throws -> Connection? {
    let peer = try channel.pipeline.syncOperations.withUnsafeTransportIfAvailable(of: NIOBSDSocket.Handle.self) {
      PeerCredentials(socket: $0)
    }
    guard let peer = peer ?? nil, peer.mayUse(group: permittedGroup) else {
      let failure = ControlFailure(
        "only the owner of the control socket and the members of its group may use it", kind: .noPermission)
      return .refused(channel, status: "403 Forbidden", failure)
    }
    guard open.count.add(1, ordering: .relaxed).newValue <= limits.connections else {
      open.count.subtract(1, ordering: .relaxed)
      let failure = ControlFailure(
        "more than \(limits.connections) connections at a time: try again in a moment", kind: .temporary,
        field: "connections", limit: "\(limits.connections)")
      return .refused(channel, status: "503 Service Unavailable", failure)
    }
    channel.closeFuture.whenComplete { _ in open.count.subtract(1, ordering: .relaxed) }
    return nil
  }

  private func handle(_ connection: Connection) async {
    switch connection {
    case .served(let channel):
      await http.handle(value: channel, logger: logger)
    case .refused(let channel, let status, let failure):
      let body = ControlJSON.encode(failure)
      var answer = ByteBuffer(
        string: "HTTP/1.1 \(status)\r\ncontent-type: application/json\r\ncontent-length: \(body.count)\r\n"
          + "connection: close\r\n\r\n")
      answer.writeBytes(body)
      try? await channel.writeAndFlush(answer)
      try? await channel.close()
    }
  }
}

/// How many connections are served.
private final class ConnectionCount: Sendable {
  let count = Atomic(0)
}
