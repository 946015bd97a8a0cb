import CLinux
import Glibc
package import Platform
import Synchronization

/// The TCP socket at which WebRTC peers of one address family connect. One thread uses it.
package final class PeerListener: Sendable {
  private let descriptor: FileDescriptor
  /// The descriptor, to wait for connections.
  package let fileDescriptor: CInt
  /// `true` for IPv6.
  package let isIPv6: Bool
  /// The port.
  package let port: UInt16

  /// The most connections that wait to be accepted.
  private static let backlog: CInt = 64
  /// The number of the last connection of the process.
  private static let lastNumber = Atomic<UInt64>(0)

  /// Listens at `port` of all addresses of the family, or of `host` alone.
  ///
  /// - Throws: ``SystemFailure``, such as `EADDRINUSE`, and `EAFNOSUPPORT` on a host without IPv6.
  package init(isIPv6: Bool, port: UInt16, host: IPAddress? = nil) throws(SystemFailure) {
    let address = SocketAddress(host ?? IPAddress.unspecified(isIPv6: isIPv6), port: port)
    let made = try FileDescriptor(from: "listen") {
      address.withPointer { nightjar_tcp_listener($0, address.length, Self.backlog) }
    }
    self.isIPv6 = isIPv6
    self.port = port == 0 ? SocketAddress(localOf: made.number)?.port ?? 0 : port
    fileDescriptor = made.number
    descriptor = made
  }

  /// The result of accepting.
  package enum Acceptance {
    /// A connection.
    case connection(PeerConnection)
    /// No connection waits.
    case none
    /// The system has no room for another one now, such as a descriptor.
    case noRoom
  }

  /// Accepts a connection.
  ///
  /// - Parameter onWait: as of ``PeerConnection``, with the connection's number.
  package func accept(onWait: @escaping @Sendable (UInt64) -> Void) -> Acceptance {
    while true {
      var storage = sockaddr_storage()
      var length = socklen_t(MemoryLayout<sockaddr_storage>.size)
      let made = uninterrupted {
        nightjar_accept(fileDescriptor, &storage, &length, CInt(PeerConnection.unsentLimit))
      }
      guard made < 0 else {
        let number = Self.lastNumber.add(1, ordering: .relaxed).newValue
        let peer = SocketAddress(storage, length: length)
        return .connection(
          PeerConnection(FileDescriptor(owning: made), number: number, peer: peer) { onWait(number) })
      }
      switch errno {
      // The connection was closed before it was accepted, or an error of the network came on it (accept(2)).
      case ECONNABORTED, EPROTO, ENETDOWN, ENOPROTOOPT, EHOSTDOWN, ENONET, EHOSTUNREACH, EOPNOTSUPP, ENETUNREACH,
        EPERM:
        continue
      case EAGAIN: return .none
      default: return .noRoom
      }
    }
  }
}
