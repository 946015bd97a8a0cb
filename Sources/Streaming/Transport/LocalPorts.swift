import CLinux
import Glibc
import Platform

/// This side's two UDP ports for RTP and RTCP, RTP's even and RTCP's the next (RFC 3550 section 11). One pair serves
/// all viewers, so that a firewall can know the ports, and RTCP from an unknown sender arrives where it is counted.
///
/// Each viewer's own sockets are bound to the same ports and connected. The kernel gives a datagram to the socket whose
/// peer sent it, and to the sockets here where there is none.
final class LocalPorts: Sendable {
  /// The port of RTP; RTCP's is the next.
  let port: UInt16
  private let media: CInt
  private let control: CInt
  private let family: CInt

  private static let attempts = 64
  /// The size of the receive buffer: datagrams that come here are only counted.
  private static let receiveBuffer: CInt = 8192

  /// Binds a free pair of a family.
  ///
  /// - Throws: ``SystemFailure`` where there is none, or the system has no such family.
  init(family: CInt) throws(SystemFailure) {
    self.family = family
    var failure = EADDRINUSE
    for _ in 0..<Self.attempts {
      let given = nightjar_udp_socket(family)
      guard given >= 0 else { throw SystemFailure("socket") }
      let first = nightjar_bind_first(given, family, 0)
      guard first >= 0 else {
        failure = errno
        close(given)
        throw SystemFailure("bind", errorNumber: failure)
      }
      // The one after an even port, the one before an odd one.
      let other = nightjar_udp_socket(family)
      if other >= 0, nightjar_bind_first(other, family, UInt16(first) ^ 1) >= 0 {
        (media, control) = first.isMultiple(of: 2) ? (given, other) : (other, given)
        port = UInt16(first) & ~1
        for descriptor in [given, other] {
          var size = Self.receiveBuffer
          setsockopt(descriptor, SOL_SOCKET, SO_RCVBUF, &size, socklen_t(MemoryLayout<CInt>.size))
        }
        return
      }
      failure = errno
      if other >= 0 { close(other) }
      close(given)
    }
    throw SystemFailure("bind", errorNumber: failure)
  }

  deinit {
    close(media)
    close(control)
  }

  /// The descriptors to watch for datagrams from unknown senders.
  var descriptors: (media: CInt, control: CInt) { (media, control) }

  /// Takes at most `limit` datagrams from unknown senders, and returns their number.
  func discardStrangers(limit: Int) -> Int {
    var count = 0
    var byte: UInt8 = 0
    for descriptor in [media, control] {
      while count < limit, nightjar_receive(descriptor, &byte, 1) >= 0 { count += 1 }
    }
    return count
  }

  /// Returns a socket for a viewer on RTP's port, or on RTCP's.
  func socket(control isControl: Bool) throws(SystemFailure) -> CInt {
    let descriptor = nightjar_udp_socket(family)
    guard descriptor >= 0 else { throw SystemFailure("socket") }
    guard nightjar_bind_shared(descriptor, family, isControl ? port + 1 : port) >= 0 else {
      let failure = SystemFailure("bind")
      close(descriptor)
      throw failure
    }
    return descriptor
  }
}
