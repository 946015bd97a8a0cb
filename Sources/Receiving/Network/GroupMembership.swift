import CLinux
import Glibc
import Platform

/// The membership of this host in a multicast group.
struct GroupMembership {
  /// The group.
  let group: IPAddress
  /// The only sender whose packets count; nil is the first that sends.
  let sender: IPAddress?
  /// `true` if the network is asked for this sender's packets alone (RFC 4607).
  let isSourceSpecific: Bool
  /// The index of the interface; 0 is the route's.
  let interface: UInt32
  /// The most routers that our reports may pass.
  let timeToLive: UInt8

  /// Creates a membership; see the properties.
  init(
    _ group: IPAddress, sender: IPAddress?, isSourceSpecific: Bool = false, interface: UInt32, timeToLive: UInt8
  ) {
    (self.group, self.sender, self.isSourceSpecific) = (group, sender, isSourceSpecific)
    (self.interface, self.timeToLive) = (interface, timeToLive)
  }

  /// Joins the group with a socket, and has what the socket sends leave by the same interface.
  ///
  /// - Throws: `SystemFailure`.
  func join(_ socket: borrowing FileDescriptor) throws(SystemFailure) {
    let level = CInt(group.isIPv6 ? IPPROTO_IPV6 : IPPROTO_IP)
    if isSourceSpecific, let sender {
      var request = group_source_req()
      request.gsr_interface = interface
      Self.write(group, to: &request.gsr_group)
      Self.write(sender, to: &request.gsr_source)
      try socket.set(level, MCAST_JOIN_SOURCE_GROUP, request, "joining the group")
    } else {
      var request = group_req()
      request.gr_interface = interface
      Self.write(group, to: &request.gr_group)
      try socket.set(level, MCAST_JOIN_GROUP, request, "joining the group")
    }
    try socket.set(level, group.isIPv6 ? IPV6_MULTICAST_HOPS : IP_MULTICAST_TTL, CInt(timeToLive), "ttl")
    guard interface != 0 else { return }
    var leaving = ip_mreqn()
    leaving.imr_ifindex = CInt(bitPattern: interface)
    if group.isIPv6 {
      try socket.set(level, IPV6_MULTICAST_IF, leaving.imr_ifindex, "interface")
    } else {
      try socket.set(level, IP_MULTICAST_IF, leaving, "interface")
    }
  }

  private static func write(_ address: IPAddress, to storage: inout sockaddr_storage) {
    withUnsafeMutableBytes(of: &storage) { memory in
      PeerAddress(address, port: 0).withSocketAddress { pointer, count in
        memory.copyMemory(from: UnsafeRawBufferPointer(start: pointer, count: Int(count)))
      }
    }
  }

  /// Returns the index of an interface.
  ///
  /// - Throws: ``ReceiverError/connection(_:)``: it may come later.
  static func index(of name: String) throws(ReceiverError) -> UInt32 {
    let index = if_nametoindex(name)
    guard index != 0 else { throw .connection("there is no interface \(Text.printable(name))") }
    return index
  }

  /// Returns the index of the interface that has an address of this host; 0 where none has it.
  static func index(of address: IPAddress) -> UInt32 {
    var list: UnsafeMutablePointer<ifaddrs>?
    guard getifaddrs(&list) == 0 else { return 0 }
    defer { freeifaddrs(list) }
    var next = list
    while let entry = next?.pointee {
      next = entry.ifa_next
      guard let pointer = entry.ifa_addr, let name = entry.ifa_name else { continue }
      let length = CInt(pointer.pointee.sa_family) == AF_INET6 ? 28 : 16
      guard PeerAddress(pointer, count: length)?.address == address else { continue }
      return if_nametoindex(name)
    }
    return 0
  }
}
