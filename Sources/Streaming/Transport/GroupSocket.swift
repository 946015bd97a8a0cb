import CLinux
import Glibc
package import Platform

/// The options by which packets are sent to a multicast group.
package struct MulticastOptions: Hashable, Sendable {
  /// The index of the interface that packets leave by, and that receivers' RTCP comes by; 0 is the route's.
  var interface: UInt32 = 0
  /// The interface's name, where it was named: an interface that went away comes back under another index.
  var interfaceName: String?
  /// `true` if receivers on this host get the packets too; nil leaves it to the system, where they do.
  var loopsBack: Bool?

  /// `true` if packets leave by the loopback interface, which waits for no address: Linux gives it index 1.
  var isLoopback: Bool { interface == 1 }

  /// Creates options.
  package init(interface: UInt32 = 0, interfaceName: String? = nil, loopsBack: Bool? = nil) {
    (self.interface, self.interfaceName, self.loopsBack) = (interface, interfaceName, loopsBack)
  }

  /// Returns the options with the index that the interface has now.
  func refreshed() -> MulticastOptions {
    guard let interfaceName else { return self }
    var refreshed = self
    let index = if_nametoindex(interfaceName)
    if index != 0 { refreshed.interface = index }
    return refreshed
  }

  /// Sets the options for packets that leave by `socket`.
  ///
  /// - Throws: ``SystemFailure``.
  package func apply(to socket: borrowing FileDescriptor, isIPv6: Bool) throws(SystemFailure) {
    let level = CInt(isIPv6 ? IPPROTO_IPV6 : IPPROTO_IP)
    if let loopsBack {
      try socket.set(level, isIPv6 ? IPV6_MULTICAST_LOOP : IP_MULTICAST_LOOP, CInt(loopsBack ? 1 : 0), "loop")
    }
    guard interface != 0 else { return }
    var request = ip_mreqn()
    request.imr_ifindex = CInt(bitPattern: interface)
    if isIPv6 {
      try socket.set(level, IPV6_MULTICAST_IF, request.imr_ifindex, "interface")
    } else {
      try socket.set(level, IP_MULTICAST_IF, request, "interface")
    }
  }
}

/// Receives the RTCP that receivers send to their group (RFC 3550 section 6): bound to the group's address and a member
/// of it.
///
/// A socket that is connected to the group receives nothing: no datagram comes *from* a group.
struct GroupSocket: ~Copyable {
  private let descriptor: FileDescriptor
  /// The number of `descriptor`, read before each wait.
  let fileDescriptor: CInt
  /// `true` if the socket was a member from its creation on.
  let hasJoined: Bool
  private let group: SocketAddress

  /// Joins `group`, whose port is that of RTCP.
  ///
  /// - Parameters:
  ///   - interface: the index of the interface to join on; 0 is the system's choice.
  ///   - mayWait: `true` leaves a group that cannot be joined yet, as without a route, to ``joinAgain(interface:)``.
  /// - Throws: ``SystemFailure``.
  init(joining group: SocketAddress, interface: UInt32, mayWait: Bool = false) throws(SystemFailure) {
    let group = group.with(interface: interface)
    let socket = try FileDescriptor(from: "socket") { nightjar_udp_socket(group.family) }
    // Receivers of the group on this host have the same port.
    try? socket.set(SOL_SOCKET, SO_REUSEADDR, CInt(1))
    try? socket.set(SOL_SOCKET, SO_REUSEPORT, CInt(1))
    try syscall("joining the group") { group.withPointer { bind(socket.number, $0, group.length) } }
    do throws(SystemFailure) {
      try Self.join(socket, group, interface: interface)
      hasJoined = true
    } catch {
      guard mayWait else { throw error }
      hasJoined = false
    }
    self.group = group
    fileDescriptor = socket.number
    descriptor = socket
  }

  /// Joins once more, after the interface was gone and with it the membership, or before it was there. Does nothing if
  /// the socket is still a member.
  borrowing func joinAgain(interface: UInt32) {
    try? Self.join(descriptor, group, interface: interface)
  }

  private static func join(
    _ socket: borrowing FileDescriptor, _ group: SocketAddress, interface: UInt32
  ) throws(SystemFailure) {
    var request = group_req()
    request.gr_interface = interface
    withUnsafeMutableBytes(of: &request.gr_group) { memory in
      group.withPointer {
        memory.copyMemory(from: UnsafeRawBufferPointer(start: $0, count: Int(group.length)))
      }
    }
    let level = CInt(group.isIPv6 ? IPPROTO_IPV6 : IPPROTO_IP)
    try socket.set(level, MCAST_JOIN_GROUP, request, "joining the group")
  }
}
