import CLinux
import Glibc
import Platform
import Serving

/// The route from this host to others.
enum DefaultRoute {
  /// Returns the source address of packets to the internet, by which others on this network know this host. Returns
  /// `nil` if there is no such route. Nothing is sent: connecting a UDP socket only looks up the route.
  static func address(isIPv6: Bool) -> String? {
    // Addresses that no host has: those for documentation (RFC 5737, RFC 3849).
    let (family, far) = isIPv6 ? (AF_INET6, "2001:db8::1") : (AF_INET, "192.0.2.1")
    var hints = addrinfo()
    hints.ai_family = family
    hints.ai_socktype = CInt(SOCK_DGRAM.rawValue)
    hints.ai_flags = AI_NUMERICHOST
    var list: UnsafeMutablePointer<addrinfo>?
    guard getaddrinfo(far, "9", &hints, &list) == 0, let list else { return nil }
    defer { freeaddrinfo(list) }
    let type = CInt(SOCK_DGRAM.rawValue | SOCK_CLOEXEC.rawValue)
    guard let opened = try? FileDescriptor(from: "socket", { socket(family, type, 0) }) else { return nil }
    guard connect(opened.number, list.pointee.ai_addr, list.pointee.ai_addrlen) == 0 else { return nil }
    var local = sockaddr_storage()
    var size = socklen_t(MemoryLayout<sockaddr_storage>.size)
    return withUnsafeMutableBytes(of: &local) { bytes in
      // A sockaddr_storage begins as a sockaddr does.
      guard let address = bytes.assumingMemoryBound(to: sockaddr.self).baseAddress,
        getsockname(opened.number, address, &size) == 0
      else { return nil }
      var text = [CChar](repeating: 0, count: 64)
      guard getnameinfo(address, size, &text, socklen_t(text.count), nil, 0, NI_NUMERICHOST) == 0 else { return nil }
      return String(cBuffer: text)
    }
  }
}

extension TCPListener {
  /// The names of the address for clients: this host's name if the listener is bound to all addresses, and the numeric
  /// address, because other hosts may not know the name.
  var hosts: [String] {
    let name = RTSPPlayerCommands.host(of: address)
    return hostForOthers == name ? [name] : [name, hostForOthers]
  }

  /// The address for other hosts on the network; numeric if the listener is bound to all addresses, because this host's
  /// name may mean nothing to them.
  var hostForOthers: String {
    switch address {
    case "0.0.0.0":
      DefaultRoute.address(isIPv6: false) ?? Self.interfaceAddress(isIPv6: false)
        ?? RTSPPlayerCommands.host(of: address)
    case "::":
      (DefaultRoute.address(isIPv6: true) ?? Self.interfaceAddress(isIPv6: true)).map { "[\($0)]" }
        ?? RTSPPlayerCommands.host(of: address)
    default: RTSPPlayerCommands.host(of: address)
    }
  }

  /// The first address of an interface: a network without a router has no default route.
  private static func interfaceAddress(isIPv6: Bool) -> String? {
    HostNames.ofMachine.addresses.lazy.compactMap { IPAddress(bytes: $0) }
      .first { $0.isIPv6 == isIPv6 && !$0.isLoopback && !$0.isIPv6LinkLocal }?.text
  }
}
