import Credentials
import Glibc
import Media
public import NIOCore
public import NIOPosix

/// Where a server listens for TCP connections.
public struct TCPListener: Hashable, Sendable {
  /// A numeric address.
  public var address: String
  /// The TCP port; 0 lets the system choose.
  public var port: Int
  /// Whether connections are encrypted from their first byte.
  public var isEncrypted: Bool
  /// Whether the server does without it where this machine has no such address.
  public var isOptional: Bool
  /// Whether this machine had no such address when the server began to listen there; once it has, it is reached.
  public private(set) var isAbsent = false
  /// A socket that listens there already, which stays its owner's; nil has the server open one.
  public var descriptor: CInt?

  /// A listener; see the properties.
  public init(
    address: String, port: Int, isEncrypted: Bool = false, isOptional: Bool = false, descriptor: CInt? = nil
  ) {
    self.descriptor = descriptor
    self.address = address
    self.port = port
    self.isEncrypted = isEncrypted
    self.isOptional = isOptional
  }

  /// Whether only this machine reaches it.
  public var isLoopback: Bool { PeerAddress(address)?.isLoopback == true }

  /// Whether it can be listened there, by doing so for a moment. Waits: not for NIO's own threads.
  ///
  /// - Throws: ``ListenError``.
  public func check(service: String) throws {
    guard descriptor == nil else { return }
    let group = MultiThreadedEventLoopGroup(numberOfThreads: 1)
    defer { try? group.syncShutdownGracefully() }
    try open(ServerBootstrap(group: group), service: service)?.channel.close().wait()
  }

  /// Begins to listen, connections being set up as `bootstrap` says; the channel, and where it listens now, with the port
  /// that the system chose. Nil for one that is optional where the machine has no such address. Waits: not for NIO's own
  /// threads.
  ///
  /// - Parameter service: what is served, for messages.
  /// - Throws: ``ListenError``.
  public func open(
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
      // NIO closes what it is given, and the next server is to have it too.
      let own = fcntl(descriptor, F_DUPFD_CLOEXEC, 0)
      guard own >= 0 else { throw IOError(errnoCode: errno, reason: "fcntl") }
      return (try bootstrap.withBoundSocket(own).wait(), isAbsent: false)
    }
    // Read from its digits: the resolver gives an address of IPv4 as one of IPv6 (`::ffff:0.0.0.0`) while the machine has
    // no address of IPv4 yet, and would decide at the start of a network what is listened to ever after.
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
      // A network that is not there yet: connections arrive once this machine has the address. The option of ip(7) is
      // that of IPv6 sockets too.
      bootstrap = bootstrap.serverChannelOption(
        ChannelOptions.socket(SocketOptionLevel(IPPROTO_IP), SocketOptionName(IP_FREEBIND)), value: 1)
      return (try bootstrap.bind(to: place).wait(), isAbsent: true)
    }
  }
}
