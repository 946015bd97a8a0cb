import Glibc
package import NIOCore
package import NIOPosix
import Platform

/// An address at which a server listens for TCP connections.
package struct TCPListener: Hashable, Sendable {
  /// A numeric address.
  package var address: String
  /// The TCP port; 0 lets the system choose.
  package var port: Int
  /// `true` if connections are encrypted from their first byte.
  package var isEncrypted: Bool
  /// `true` if the server runs without this listener on a machine that lacks the address.
  package var isOptional: Bool
  /// `true` if this machine lacked the address when the server started to listen; once the machine has it, connections
  /// arrive.
  package private(set) var isAbsent = false
  /// A socket that listens there already, which stays its owner's; nil makes the server open one.
  package var descriptor: CInt?

  /// Creates a listener; see the properties.
  package init(
    address: String, port: Int, isEncrypted: Bool = false, isOptional: Bool = false, descriptor: CInt? = nil
  ) {
    self.descriptor = descriptor
    self.address = address
    self.port = port
    self.isEncrypted = isEncrypted
    self.isOptional = isOptional
  }

  /// `true` if only this machine reaches it.
  package var isLoopback: Bool { PeerAddress(address)?.isLoopback == true }

  /// Checks that a server can listen there, by listening for a moment. Waits: do not call it on NIO's own threads.
  ///
  /// - Throws: ``ListenError``.
  package func check(service: String) throws {
    guard descriptor == nil else { return }
    let group = MultiThreadedEventLoopGroup(numberOfThreads: 1)
    defer { try? group.syncShutdownGracefully() }
    try open(ServerBootstrap(group: group), service: service)?.channel.close().wait()
  }

  /// Starts to listen; `bootstrap` sets up the connections. Returns the channel and the listener with the port that the
  /// system chose. Returns nil for an optional listener if the machine lacks its address. Waits: do not call it on
  /// NIO's own threads.
  ///
  /// - Parameter service: the service's name, for messages.
  /// - Throws: ``ListenError``.
  package func open(
    _ bootstrap: ServerBootstrap, service: String
  ) throws(ListenError) -> (channel: any Channel, listener: TCPListener)? {
    do {
      return try bind(bootstrap).map { channel, isAbsent in
        var bound = self
        bound.port = channel.localAddress?.port ?? port
        bound.isAbsent = isAbsent
        return (channel, bound)
      }
    } catch {
      switch (error as? IOError)?.errnoCode {
      case EADDRINUSE: throw .inUse(service: service, address, port: port)
      case EACCES: throw .noPermission(service: service, address, port: port)
      case EADDRNOTAVAIL, EAFNOSUPPORT:
        if isOptional, descriptor == nil { return nil }
      default: break
      }
      let reason = (error as? IOError).map { SystemFailure.text($0.errnoCode) } ?? "\(error)"
      throw .listen(service: service, address, port: port, reason: reason)
    }
  }

  private func bind(_ bootstrap: ServerBootstrap) throws -> (any Channel, isAbsent: Bool)? {
    if let descriptor {
      // NIO closes its descriptor, and the next server needs the socket too.
      let own = fcntl(descriptor, F_DUPFD_CLOEXEC, 0)
      guard own >= 0 else { throw IOError(errnoCode: errno, reason: "fcntl") }
      return (try bootstrap.withBoundSocket(own).wait(), isAbsent: false)
    }
    // Parsed from its digits: the resolver returns an IPv4 address as an IPv6 one (`::ffff:0.0.0.0`) while the machine
    // has no IPv4 address yet. It would decide at the start of a network which address the server listens at from then
    // on.
    let place = try SocketAddress(ipAddress: address, port: port)
    var bootstrap = bootstrap.serverChannelOption(.socketOption(.so_reuseaddr), value: 1)
    // IPv4 has a listener of its own.
    if address.contains(":") {
      bootstrap = bootstrap.serverChannelOption(
        ChannelOptions.Types.SocketOption(level: .ipv6, name: .ipv6_v6only), value: 1)
    }
    do {
      return (try bootstrap.bind(to: place).wait(), isAbsent: false)
    } catch let error as IOError where error.errnoCode == EADDRNOTAVAIL && !isOptional {
      // The network is not there yet: connections arrive once this machine has the address. The option of ip(7) also
      // works for IPv6 sockets.
      bootstrap = bootstrap.serverChannelOption(
        ChannelOptions.socket(SocketOptionLevel(IPPROTO_IP), SocketOptionName(IP_FREEBIND)), value: 1)
      return (try bootstrap.bind(to: place).wait(), isAbsent: true)
    }
  }
}
