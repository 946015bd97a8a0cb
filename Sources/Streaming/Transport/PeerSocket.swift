import CLinux
import Glibc
package import Platform

/// The UDP socket of all WebRTC peers of one address family. Several threads send on it; one receives.
package final class PeerSocket: Sendable {
  private let descriptor: FileDescriptor
  /// The descriptor, to wait for datagrams.
  package let fileDescriptor: CInt
  /// `true` for IPv6.
  package let isIPv6: Bool
  /// The port.
  package let port: UInt16

  /// The room for packets in the kernel, in bytes, in each direction: a large picture for many peers, and what comes in a
  /// flood while nobody reads.
  private static let bufferBytes = 4 << 20

  /// Creates a socket at `port` of all addresses of the family, or of `host` alone.
  ///
  /// - Throws: ``SystemFailure``, such as `EADDRINUSE`, and `EAFNOSUPPORT` on a host without IPv6.
  package init(isIPv6: Bool, port: UInt16, host: IPAddress? = nil) throws(SystemFailure) {
    let family = isIPv6 ? AF_INET6 : AF_INET
    let made = try FileDescriptor(from: "socket") { nightjar_udp_socket(family) }
    // The kernel gives as much as it allows.
    for option in [SO_SNDBUF, SO_RCVBUF] { try? made.set(SOL_SOCKET, option, CInt(Self.bufferBytes)) }
    let address = SocketAddress(host ?? IPAddress.unspecified(isIPv6: isIPv6), port: port)
    let number = made.number
    try syscall("bind") { address.withPointer { bind(number, $0, address.length) } }
    try syscall("bind") { nightjar_tell_local_address(number, family) }
    self.isIPv6 = isIPv6
    self.port = port == 0 ? SocketAddress(localOf: number)?.port ?? 0 : port
    fileDescriptor = number
    descriptor = made
  }

  /// Sends one datagram, which is lost if there is no room.
  ///
  /// - Parameter source: the local address to send from; nil leaves it to the kernel.
  package func send(_ bytes: UnsafeRawBufferPointer, to address: SocketAddress, from source: IPAddress?) {
    address.withPointer { name in
      var vector = iovec(iov_base: UnsafeMutableRawPointer(mutating: bytes.baseAddress), iov_len: bytes.count)
      var control = nightjar_message_control()
      var message = nightjar_message()
      message.header.msg_name = UnsafeMutableRawPointer(mutating: name)
      message.header.msg_namelen = address.length
      message.header.msg_iovlen = 1
      withUnsafeMutablePointer(to: &vector) { vector in
        withUnsafeMutablePointer(to: &control) { control in
          message.header.msg_iov = vector
          if let source { nightjar_set_source(&message, control, source.bytes, source.bytes.count) }
          _ = nightjar_send_messages(fileDescriptor, &message, 1)
        }
      }
    }
  }

  /// A datagram that has come.
  package struct Arrival {
    /// The length in bytes.
    package let count: Int
    /// The sender.
    package let sender: SocketAddress
    /// The local address at which it came; nil where the kernel does not tell.
    package let local: IPAddress?
  }

  /// Takes one datagram into `memory`. One that does not fit is no packet of ours, and seems empty. Returns nil if there
  /// is none.
  package func receive(into memory: UnsafeMutableRawBufferPointer) -> Arrival? {
    var storage = sockaddr_storage()
    var address = nightjar_local_address()
    while true {
      var length = socklen_t(MemoryLayout<sockaddr_storage>.size)
      let count = uninterrupted {
        nightjar_receive_from(fileDescriptor, memory.baseAddress, memory.count, &storage, &length, &address)
      }
      guard count >= 0 else {
        // A refusal of our own datagrams: an unconnected socket gets none, but an interface that goes does this.
        if errno == ECONNREFUSED { continue }
        return nil
      }
      let local = withUnsafeBytes(of: address.bytes) { IPAddress(bytes: Array($0.prefix(address.count))) }
      return Arrival(
        count: count <= memory.count ? count : 0, sender: SocketAddress(storage, length: length), local: local)
    }
  }
}
