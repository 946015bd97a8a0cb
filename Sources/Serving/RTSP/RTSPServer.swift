import Glibc
import NIOCore
import NIOPosix
import Streaming
import TLS

/// Serves cameras by RTSP (RFC 2326), each at its own path, to permitted viewers.
///
/// Cameras and users may change while the server runs; viewers that a change does not concern do not notice it.
///
/// The server runs on one NIO thread, which handles no frames: the send thread sends packets for UDP, and hands
/// interleaved packets over to the NIO thread.
package final class RTSPServer: Sendable {
  private let group: MultiThreadedEventLoopGroup
  private let channels: [any Channel]
  private let service: NIOLoopBound<RTSPService>
  private let handover: Handover
  /// The server's events.
  package let events: RTSPServerEvents
  /// The listeners, with the ports that the system chose.
  package let listeners: [RTSPServerConfiguration.Listener]

  /// Starts to listen.
  ///
  /// - Throws: `ListenError`, ``RTSPServerError``, or `StreamDestinationError` if a camera is already sent to an
  ///   address that is to be a group; then nothing listens.
  package init(_ configuration: RTSPServerConfiguration, presentations: [Presentation]) throws {
    let handover = try Handover()
    self.handover = handover
    let group = MultiThreadedEventLoopGroup(numberOfThreads: 1)
    let loop = group.next()
    let events = RTSPServerEvents()
    self.events = events
    do {
      let tls = try configuration.identity.map { try $0.serverContext() }
      try handover.attach(to: group)
      let service = try loop.submit {
        let service = RTSPService(configuration, loop, handover, events)
        try service.set(presentations)
        return NIOLoopBound(service, eventLoop: loop)
      }.wait()
      var channels: [any Channel] = []
      var listeners: [RTSPServerConfiguration.Listener] = []
      do {
        for listener in configuration.listeners {
          let bootstrap = Self.bootstrap(service, group, tls: listener.isEncrypted ? tls : nil)
          guard let opened = try listener.open(bootstrap, service: "RTSP") else { continue }
          channels.append(opened.channel)
          listeners.append(opened.listener)
        }
      } catch {
        // A channel that fails to close is closed already; the reason why nothing listens is reported.
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

  /// The bytes that the kernel has not sent yet and above which it accepts no more from a connection, tcp(7): the rest waits
  /// where it is counted. This is one picture at a few Mbit/s, so that the next picture is ready when the first has been sent.
  /// A write that has begun, and small writes, may exceed it, up to 64 KiB; see ``OutgoingBytes``.
  private static let unsentBytes = 16_384

  private static func bootstrap(
    _ service: NIOLoopBound<RTSPService>, _ group: MultiThreadedEventLoopGroup, tls: ServerContext?
  ) -> ServerBootstrap {
    ServerBootstrap(group: group)
      .serverChannelOption(.backlog, value: 64)
      .childChannelInitializer { channel in
        channel.eventLoop.makeCompletedFuture {
          // With `childChannelOption`, each would cost futures of its own.
          if let options = channel.syncOptions { try Self.set(options) }
          if let tls { try channel.pipeline.syncOperations.addHandler(TLSHandler(tls)) }
          try channel.pipeline.syncOperations.addHandler(RTSPConnectionHandler(service.value, isEncrypted: tls != nil))
        }
      }
  }

  private static func set(_ options: any NIOSynchronousChannelOptions) throws {
    // Small frames must not wait for more; bytes that the kernel holds for one viewer are a delay that nothing reports.
    try options.setOption(.tcpOption(.tcp_nodelay), value: 1)
    try options.setOption(.socketOption(.so_sndbuf), value: 1 << 17)
    try options.setOption(.tcpOption(.init(rawValue: TCP_NOTSENT_LOWAT)), value: Self.unsentBytes)
    // Gives a client that floods the server only this much at a time, so that the viewers are served in between.
    try options.setOption(.maxMessagesPerRead, value: 1)
    try options.setOption(.recvAllocator, value: FixedSizeRecvByteBufferAllocator(capacity: 4096))
  }

  /// Returns the statistics so far. Do not call it on NIO's own thread.
  package func statistics() throws -> RTSPServerStatistics {
    let service = service
    return try group.next().submit { service.value.currentStatistics() }.wait()
  }

  /// Returns the current viewers, in the order in which they joined. Do not call it on NIO's own thread.
  package func viewers() throws -> [RTSPServerViewer] {
    let service = service
    return try group.next().submit { service.value.viewers() }.wait()
  }

  /// Sets the cameras to serve. Do not call it on NIO's own thread.
  ///
  /// A camera that keeps its name and its pipeline is the same camera, and its viewers lose no packet. If a camera is
  /// gone or has another pipeline, its sessions end as if its stream had ended:
  ///
  /// - Viewers get a BYE.
  /// - Connections that carried packets are closed, so that players try again at once.
  /// - Sessions over UDP are forgotten, so that the next request of each gets 454.
  ///
  /// If only the group has changed, this applies only to viewers of the group.
  ///
  /// - Throws: ``RTSPServerError`` for a name that no URL can contain, a name of two cameras, or a group of two: then
  ///   nothing has changed. `StreamDestinationError` if a camera is already sent to an address that is to be a group:
  ///   then all are served with their former groups, except for a new camera that is sent to one of those.
  package func setPresentations(_ presentations: [Presentation]) throws {
    let service = service
    try group.next().submit { try service.value.set(presentations) }.wait()
  }

  /// Sets the users that may watch. Do not call it on NIO's own thread.
  ///
  /// Sessions and connections end at once if their user is missing from `users` or has another password than at the
  /// login. Other sessions continue, and earlier challenges stay valid. Nil admits everybody on this machine and nobody
  /// else, wherever the server listens. After a change from nil to users, clients without a login must log in.
  ///
  /// - Throws: NIO's error if the server has been stopped.
  package func set(users: UsersFile?) throws {
    let service = service
    try group.next().submit { service.value.set(users: users) }.wait()
  }

  /// Ends all sessions and connections, and waits until that is done. Do not call it on NIO's own thread.
  package func stop() {
    let service = service
    for channel in channels { try? channel.close().wait() }
    _ = try? group.next().flatSubmit { service.value.close() }.wait()
    try? group.syncShutdownGracefully()
    handover.end()
  }
}
