public import Credentials
import Glibc
public import Listening
import Media
import NIOCore
import NIOPosix
import Streaming
import TLS

/// Serves cameras by RTSP (RFC 2326), each at a path of its own, to whoever may watch.
///
/// Cameras and users may change while it runs; who has nothing to do with the change does not notice it.
///
/// It runs on one thread of NIO, which is not on a frame's way: packets for UDP go from the send thread, and those that
/// are interleaved are handed over by it.
public final class RTSPServer: Sendable {
  private let group: MultiThreadedEventLoopGroup
  private let channels: [any Channel]
  private let service: NIOLoopBound<Service>
  private let handover: Handover
  /// Who came and went.
  public let events: ServerEvents
  /// Where it listens, with the ports that the system chose.
  public let listeners: [ServerConfiguration.Listener]

  /// Begins to listen.
  ///
  /// - Throws: `ListenError`, ``ServerError``, `StreamDestinationError` where a camera is sent already to what is to be a group; then
  ///   nothing listens.
  public init(_ configuration: ServerConfiguration, presentations: [Presentation]) throws {
    let handover = try Handover()
    self.handover = handover
    let group = MultiThreadedEventLoopGroup(numberOfThreads: 1)
    let loop = group.next()
    let events = ServerEvents()
    self.events = events
    do {
      let tls = try configuration.identity.map { try $0.serverContext() }
      try handover.attach(to: group)
      let service = try loop.submit {
        let service = Service(configuration, loop, handover, events)
        try service.set(presentations)
        return NIOLoopBound(service, eventLoop: loop)
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
        // What fails to close is closed already; why it does not listen is what is told.
        for channel in channels { try? channel.close().wait() }
        _ = try? loop.flatSubmit { service.value.close() }.wait()
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

  /// Bytes that the kernel takes of a connection before it has sent them, tcp(7): the rest waits where it is counted. A
  /// picture's worth at a few Mbit/s, so that the next one is there when this one has gone.
  private static let unsentBytes = 16_384

  private static func bootstrap(
    _ service: NIOLoopBound<Service>, _ group: MultiThreadedEventLoopGroup, tls: ServerContext?
  ) -> ServerBootstrap {
    ServerBootstrap(group: group)
      .serverChannelOption(.backlog, value: 64)
      .childChannelInitializer { channel in
        channel.eventLoop.makeCompletedFuture {
          // By `childChannelOption` each would cost futures of its own.
          if let options = channel.syncOptions { try Self.set(options) }
          if let tls { try channel.pipeline.syncOperations.addHandler(TLSHandler(tls)) }
          try channel.pipeline.syncOperations.addHandler(ConnectionHandler(service.value, isEncrypted: tls != nil))
        }
      }
  }

  private static func set(_ options: any NIOSynchronousChannelOptions) throws {
    // Small frames must not wait for more; and what the kernel holds for one viewer is delay that nobody sees.
    try options.setOption(.tcpOption(.tcp_nodelay), value: 1)
    try options.setOption(.socketOption(.so_sndbuf), value: 1 << 17)
    try options.setOption(.tcpOption(.init(rawValue: TCP_NOTSENT_LOWAT)), value: Self.unsentBytes)
    // A client that floods gets its turn for so much at a time, and the viewers theirs in between.
    try options.setOption(.maxMessagesPerRead, value: 1)
    try options.setOption(.recvAllocator, value: FixedSizeRecvByteBufferAllocator(capacity: 4096))
  }

  /// What happened so far. Not for NIO's own thread.
  public func statistics() throws -> ServerStatistics {
    let service = service
    return try group.next().submit { service.value.currentStatistics() }.wait()
  }

  /// Who watches now, in the order in which they came. Not for NIO's own thread.
  public func viewers() throws -> [ServerViewer] {
    let service = service
    return try group.next().submit { service.value.viewers() }.wait()
  }

  /// Serves these cameras from now on. Not for NIO's own thread.
  ///
  /// One that has its name and its pipeline still is the same camera, and who watches it loses not one packet. Sessions of
  /// one that is gone, or has another pipeline, end as when a camera's stream ends: their viewers get a BYE, connections
  /// that carried packets are closed, so that players try again at once, and sessions over UDP are forgotten, so that the
  /// next request of each gets 454. Where only the group is another, that is so for viewers of the group alone.
  ///
  /// - Throws: ``ServerError`` for a name that no URL can have, a name of two cameras, or a group of two: then nothing has
  ///   changed. `StreamDestinationError` where a camera is sent already to what is to be a group: then all are served, with
  ///   the groups that they had, but for a new one that is sent to one of those.
  public func setPresentations(_ presentations: [Presentation]) throws {
    let service = service
    try group.next().submit { try service.value.set(presentations) }.wait()
  }

  /// Lets these users watch from now on. Not for NIO's own thread.
  ///
  /// Who is none of them, or has another password than the one logged in with, is thrown out at once: sessions and
  /// connections end. Others go on, and what they were asked for holds. Nil lets in everybody on this machine and nobody
  /// else, wherever the server listens; from nil to users, who has not logged in must.
  ///
  /// - Throws: What NIO does where the server has been stopped.
  public func set(users: UsersFile?) throws {
    let service = service
    try group.next().submit { service.value.set(users: users) }.wait()
  }

  /// Ends all sessions and connections, and waits until that is done. Not for NIO's own thread.
  public func stop() {
    let service = service
    for channel in channels { try? channel.close().wait() }
    _ = try? group.next().flatSubmit { service.value.close() }.wait()
    try? group.syncShutdownGracefully()
    handover.end()
  }
}
