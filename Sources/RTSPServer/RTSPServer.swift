import Glibc
import Media
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
  /// - Throws: ``ServerError``; then nothing listens.
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
          guard let opened = try Self.listen(listener, tls: listener.isEncrypted ? tls : nil, service, group) else {
            continue
          }
          channels.append(opened.channel)
          var bound = listener
          bound.port = opened.channel.localAddress?.port ?? listener.port
          bound.isAbsent = opened.isAbsent
          listeners.append(bound)
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

  private static func listen(
    _ listener: ServerConfiguration.Listener, tls: NIOSSLContext?, _ service: NIOLoopBound<Service>,
    _ group: MultiThreadedEventLoopGroup
  ) throws(ServerError) -> (channel: any Channel, isAbsent: Bool)? {
    var bootstrap = ServerBootstrap(group: group)
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
          try channel.pipeline.syncOperations.addHandler(
            ConnectionHandler(service.value, isEncrypted: listener.isEncrypted))
        }
      }
    if let descriptor = listener.descriptor {
      do {
        return (try bootstrap.withBoundSocket(descriptor).wait(), isAbsent: false)
      } catch {
        let reason = (error as? IOError).map { SystemFailure.text($0.errnoCode) } ?? "\(error)"
        throw .listen(listener.address, port: listener.port, reason: reason)
      }
    }
    bootstrap = bootstrap.serverChannelOption(.socketOption(.so_reuseaddr), value: 1)
    // IPv4 has a listener of its own.
    if listener.address.contains(":") {
      bootstrap = bootstrap.serverChannelOption(
        ChannelOptions.Types.SocketOption(level: .ipv6, name: .ipv6_v6only), value: 1)
    }
    do {
      do {
        return (try bootstrap.bind(host: listener.address, port: listener.port).wait(), isAbsent: false)
      } catch let error as IOError where error.errnoCode == EADDRNOTAVAIL && !listener.isOptional {
        // A network that is not there yet: connections arrive once this machine has the address. The option of ip(7) is
        // that of IPv6 sockets too.
        bootstrap = bootstrap.serverChannelOption(
          ChannelOptions.socket(SocketOptionLevel(IPPROTO_IP), SocketOptionName(IP_FREEBIND)), value: 1)
        return (try bootstrap.bind(host: listener.address, port: listener.port).wait(), isAbsent: true)
      }
    } catch {
      if let error = error as? IOError, error.errnoCode == EADDRINUSE {
        throw .inUse(listener.address, port: listener.port)
      }
      if let error = error as? IOError, error.errnoCode == EACCES {
        throw .noPermission(listener.address, port: listener.port)
      }
      if listener.isOptional, let error = error as? IOError,
        [EADDRNOTAVAIL, EAFNOSUPPORT].contains(error.errnoCode)
      {
        return nil
      }
      let reason = (error as? IOError).map { SystemFailure.text($0.errnoCode) } ?? "\(error)"
      throw .listen(listener.address, port: listener.port, reason: reason)
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
