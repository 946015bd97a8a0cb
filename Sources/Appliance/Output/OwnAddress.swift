import CLinux
import Glibc
import Platform
import Serving

/// The address by which other hosts on the network know this host.
enum OwnAddress {
  /// Returns the address for clients of a listener that accepts these families, as a URL has it: that of the default
  /// route, or in a network without a router the first one of an interface; IPv4 before IPv6. Returns `nil` if there is
  /// none.
  static func host(acceptsIPv4: Bool, acceptsIPv6: Bool) -> String? {
    for address in [routeAddress, interfaceAddress] {
      if acceptsIPv4, let found = address(false) { return found }
      if acceptsIPv6, let found = address(true) { return IPAddress.bracketed(found) }
    }
    return nil
  }

  /// Returns the first address of an interface that others can use.
  private static func interfaceAddress(isIPv6: Bool) -> String? {
    HostNames.ofMachine.addresses.lazy.compactMap { IPAddress(bytes: $0) }
      .first { $0.isIPv6 == isIPv6 && !$0.isLoopback && !$0.isIPv6LinkLocal }?.text
  }

  /// Returns the source address of packets to the internet. Returns `nil` if there is no such route. Nothing is sent:
  /// connecting a UDP socket only looks up the route.
  private static func routeAddress(isIPv6: Bool) -> String? {
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
      let host = String(cBuffer: text)
      // A link-local address has this host's name of the interface, which means nothing to others.
      return host.contains("%") ? nil : host
    }
  }
}

extension TCPListener {
  /// The names of the address for clients: this host's name if the listener is bound to all addresses, and the numeric
  /// address, because other hosts may not know the name.
  var hosts: [String] {
    let (name, host) = (RTSPPlayerCommands.host(of: address), hostForOthers)
    return host == name ? [name] : [name, host]
  }

  /// The address for other hosts on the network; numeric if the listener is bound to all addresses, because this host's
  /// name may mean nothing to them.
  var hostForOthers: String { numericHost() ?? RTSPPlayerCommands.host(of: address) }

  /// Returns this host's numeric address for others if the listener is bound to all addresses; `nil` for another
  /// listener, or if the host has none.
  ///
  /// - Parameter listeners: the listeners of which one may accept IPv4 for this one, so that both have one address.
  func numericHost(beside listeners: [TCPListener] = []) -> String? {
    guard ["0.0.0.0", "::"].contains(address) else { return nil }
    // No listener accepts both families, those of systemd's sockets neither.
    let acceptsIPv4 =
      address == "0.0.0.0" || listeners.contains { $0.address == "0.0.0.0" && $0.isEncrypted == isEncrypted }
    return OwnAddress.host(acceptsIPv4: acceptsIPv4, acceptsIPv6: address == "::")
  }
}
