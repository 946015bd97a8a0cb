import CLinux
import Glibc
package import Platform

/// This side's two UDP ports for RTP and RTCP, RTP's even and RTCP's the next (RFC 3550 section 11). One pair serves
/// all viewers, so that a firewall can know the ports, and RTCP from an unknown sender arrives where it is counted.
///
/// Each viewer's own sockets are bound to the same ports and connected. The kernel gives a datagram to the socket whose
/// peer sent it, and to the sockets here where there is none.
package final class LocalPorts: Sendable {
  /// The port of RTP; RTCP's is the next.
  package let port: UInt16
  private let media: FileDescriptor
  private let control: FileDescriptor
  private let family: CInt

  private static let attempts = 64
  /// The size of the receive buffer: datagrams that come here are only counted.
  private static let receiveBuffer: CInt = 8192

  /// Binds a free pair of a family.
  ///
  /// - Throws: ``SystemFailure`` where there is none, or the system has no such family.
  package init(family: CInt) throws(SystemFailure) {
    self.family = family
    var attempt = 1
    while true {
      let given = try FileDescriptor(from: "socket") { nightjar_udp_socket(family) }
      let first = try syscall("bind") { nightjar_bind_first(given.number, family, 0) }
      let other = try FileDescriptor(from: "socket") { nightjar_udp_socket(family) }
      // The one after an even port, the one before an odd one.
      guard nightjar_bind_first(other.number, family, UInt16(first) ^ 1) >= 0 else {
        guard attempt < Self.attempts else { throw SystemFailure("bind") }
        attempt += 1
        continue
      }
      try? given.set(SOL_SOCKET, SO_RCVBUF, Self.receiveBuffer)
      try? other.set(SOL_SOCKET, SO_RCVBUF, Self.receiveBuffer)
      port = UInt16(first) & ~1
      if first.isMultiple(of: 2) {
        media = given
        control = other
      } else {
        media = other
        control = given
      }
      return
    }
  }

  /// The descriptors to watch for datagrams from unknown senders.
  var descriptors: (media: CInt, control: CInt) { (media.number, control.number) }

  /// Takes at most `limit` datagrams from unknown senders, and returns their number.
  package func discardStrangers(limit: Int) -> Int {
    var count = 0
    var byte: UInt8 = 0
    for descriptor in [media.number, control.number] {
      while count < limit, nightjar_receive(descriptor, &byte, 1) >= 0 { count += 1 }
    }
    return count
  }

  /// Returns a socket for a viewer on RTP's port, or on RTCP's.
  ///
  /// - Throws: ``SystemFailure``.
  func socket(control isControl: Bool) throws(SystemFailure) -> FileDescriptor {
    let descriptor = try FileDescriptor(from: "socket") { nightjar_udp_socket(family) }
    try syscall("bind") { nightjar_bind_shared(descriptor.number, family, isControl ? port + 1 : port) }
    return descriptor
  }
}
