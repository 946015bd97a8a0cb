public import Listening
import NIOCore
import NIOPosix
import NIOSSL
public import Streaming

/// Serves one camera by RTSP (RFC 2326), to whoever may watch.
///
/// It runs on one thread of NIO, which is not on a frame's way: packets for UDP go from the send thread, and those that
/// are interleaved are handed over by it.
public final class RTSPServer: Sendable {
  private let group: MultiThreadedEventLoopGroup
  private let channels: [any Channel]
  private let service: NIOLoopBound<Service>
  /// Who came and went.
  public let events: ServerEvents
  /// Where it listens, with the ports that the system chose.
  public let listeners: [ServerConfiguration.Listener]

  /// Begins to listen.
  ///
  /// - Throws: `ListenError`; then nothing listens.
  public init(_ configuration: ServerConfiguration, pipeline: Pipeline) throws {
    let group = MultiThreadedEventLoopGroup(numberOfThreads: 1)
    let loop = group.next()
    let events = ServerEvents()
    self.events = events
    do {
      let tls = try configuration.identity.map { try $0.serverContext() }
      if let group = configuration.group {
        try pipeline.reserve(group: SocketAddress(host: group.address, port: group.port))
      }
      let service = try loop.submit {
        NIOLoopBound(Service(configuration, pipeline, loop, events), eventLoop: loop)
      }.wait()
      var channels: [any Channel] = []
      var listeners: [ServerConfiguration.Listener] = []
      do {
        for listener in configuration.listeners {
          let bootstrap = Self.bootstrap(service, group, tls: listener.isEncrypted ? tls : nil)
          guard let opened = try listener.open(bootstrap, service: "RTSP") else { continue }
          channels.append(opened.channel)
          listeners.append(opened.listener)
        }
      } catch {
        for channel in channels { try? channel.close().wait() }
        throw error
      }
      self.service = service
      self.channels = channels
      self.listeners = listeners
      self.group = group
    } catch {
      try? group.syncShutdownGracefully()
      throw error
    }
  }

  private static func bootstrap(
    _ service: NIOLoopBound<Service>, _ group: MultiThreadedEventLoopGroup, tls: NIOSSLContext?
  ) -> ServerBootstrap {
    ServerBootstrap(group: group)
      .serverChannelOption(.backlog, value: 64)
      // Small frames must not wait for more; and what the kernel holds for one viewer is delay that nobody sees.
      .childChannelOption(.tcpOption(.tcp_nodelay), value: 1)
      .childChannelOption(.socketOption(.so_sndbuf), value: 1 << 17)
      // A client that floods gets its turn for so much at a time, and the viewers theirs in between.
      .childChannelOption(.maxMessagesPerRead, value: 1)
      .childChannelOption(.recvAllocator, value: FixedSizeRecvByteBufferAllocator(capacity: 4096))
      .childChannelInitializer { channel in
        channel.eventLoop.makeCompletedFuture {
          if let tls { try channel.pipeline.syncOperations.addHandler(NIOSSLServerHandler(context: tls)) }
          try channel.pipeline.syncOperations.addHandler(ConnectionHandler(service.value, isEncrypted: tls != nil))
        }
      }
  }

  /// What happened so far.
  public func statistics() throws -> ServerStatistics {
    let service = service
    return try group.next().submit { service.value.statistics }.wait()
  }

  /// Ends all sessions and connections, and waits until that is done. Not for NIO's own thread.
  public func stop() {
    let service = service
    for channel in channels { try? channel.close().wait() }
    _ = try? group.next().flatSubmit { service.value.close() }.wait()
    try? group.syncShutdownGracefully()
  }
}

/// What an RTSP server has done.
public struct ServerStatistics: Sendable {
  /// Connections of now.
  public var connections = 0
  /// Sessions of now.
  public var sessions = 0
  /// Those of them that play.
  public var playing = 0
  /// Requests answered.
  public var requests = 0
  /// Requests that were refused, and bytes that were none.
  public var refused = 0
  /// Failed logins.
  public var failedLogins = 0
  /// Connections that were turned away for their number.
  public var turnedAway = 0
}
