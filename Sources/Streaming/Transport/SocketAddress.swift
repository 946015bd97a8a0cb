package import CLinux
import Glibc
package import Platform

/// An IPv4 or IPv6 address with a port, in the form that the kernel takes.
package struct SocketAddress: Equatable, @unchecked Sendable {
  // Sendable: a plain value.
  private var storage: sockaddr_storage
  package let length: socklen_t

  /// `AF_INET` or `AF_INET6`.
  package var family: CInt { CInt(storage.ss_family) }
  /// `true` if the address is IPv6.
  package var isIPv6: Bool { family == AF_INET6 }

  /// Looks `host` up: an address is taken directly; for a name, the first answer of the system's resolver.
  ///
  /// - Throws: ``StreamDestinationError/unknownHost(_:reason:)``.
  package init(host: String, port: UInt16) throws(StreamDestinationError) {
    var hints = addrinfo()
    hints.ai_socktype = CInt(SOCK_DGRAM.rawValue)
    hints.ai_family = AF_UNSPEC
    var list: UnsafeMutablePointer<addrinfo>?
    let result = getaddrinfo(host, "\(port)", &hints, &list)
    defer { if let list { freeaddrinfo(list) } }
    guard result == 0, let first = list?.pointee, let address = first.ai_addr,
      Int(first.ai_addrlen) <= MemoryLayout<sockaddr_storage>.size
    else {
      throw .unknownHost(host, reason: gai_strerror(result).map { String(cString: $0) } ?? "error \(result)")
    }
    storage = sockaddr_storage()
    withUnsafeMutableBytes(of: &storage) {
      $0.copyMemory(from: UnsafeRawBufferPointer(start: address, count: Int(first.ai_addrlen)))
    }
    length = first.ai_addrlen
  }

  /// Creates an address that the kernel has given.
  init(_ storage: sockaddr_storage, length: socklen_t) {
    (self.storage, self.length) = (storage, length)
  }

  /// Creates an address of its parts.
  package init(_ address: IPAddress, port: UInt16) {
    storage = sockaddr_storage()
    storage.ss_family = sa_family_t(address.isIPv6 ? AF_INET6 : AF_INET)
    let size = address.isIPv6 ? MemoryLayout<sockaddr_in6>.size : MemoryLayout<sockaddr_in>.size
    length = socklen_t(size)
    withUnsafeMutableBytes(of: &storage) {
      $0.storeBytes(of: port.bigEndian, toByteOffset: 2, as: UInt16.self)
      // Behind the port comes IPv4's address, or IPv6's flow and then its address.
      UnsafeMutableRawBufferPointer(rebasing: $0[(address.isIPv6 ? 8 : 4)...]).copyBytes(from: address.bytes)
    }
  }

  /// The address without the port.
  package var address: IPAddress { IPAddress(bytes: networkBytes) ?? .unspecified(isIPv6: isIPv6) }

  /// The port.
  package var port: UInt16 {
    withUnsafeBytes(of: storage) { UInt16(bigEndian: $0.load(fromByteOffset: 2, as: UInt16.self)) }
  }

  /// Returns `true` if `host` is an IPv4 or IPv6 address, which needs no name server. `fe80::1%eth0` is one where there
  /// is an eth0.
  static func isAddress(_ host: String) -> Bool {
    var hints = addrinfo()
    hints.ai_socktype = CInt(SOCK_DGRAM.rawValue)
    hints.ai_flags = AI_NUMERICHOST
    var list: UnsafeMutablePointer<addrinfo>?
    let result = getaddrinfo(host, nil, &hints, &list)
    if let list { freeaddrinfo(list) }
    return result == 0
  }

  /// Creates the local address of a socket; nil where it has none.
  init?(localOf socket: CInt) {
    var address = sockaddr_storage()
    var size = socklen_t(MemoryLayout<sockaddr_storage>.size)
    let result = withUnsafeMutableBytes(of: &address) { bytes in
      getsockname(socket, bytes.assumingMemoryBound(to: sockaddr.self).baseAddress, &size)
    }
    guard result == 0 else { return nil }
    storage = address
    length = size
  }

  /// Returns this address with another port.
  func with(port: UInt16) -> SocketAddress {
    var copy = self
    // Both families have the port behind the family, in network order.
    withUnsafeMutableBytes(of: &copy.storage) {
      $0.storeBytes(of: port.bigEndian, toByteOffset: 2, as: UInt16.self)
    }
    return copy
  }

  /// Returns this address with an interface, by its index, if the address is IPv6 and names none. `bind` needs the
  /// interface of an address that is valid on one link alone.
  package func with(interface: UInt32) -> SocketAddress {
    guard isIPv6, interface != 0 else { return self }
    var copy = self
    // sin6_scope_id, the last field.
    withUnsafeMutableBytes(of: &copy.storage) { bytes in
      if bytes.load(fromByteOffset: 24, as: UInt32.self) == 0 {
        bytes.storeBytes(of: interface, toByteOffset: 24, as: UInt32.self)
      }
    }
    return copy
  }

  /// The address as in packets: 4 or 16 bytes.
  var networkBytes: [UInt8] {
    withUnsafeBytes(of: storage) { Array(isIPv6 ? $0[8..<24] : $0[4..<8]) }
  }

  /// `true` if the address is a multicast group: 224.0.0.0/4 or ff00::/8.
  package var isMulticast: Bool {
    withUnsafeBytes(of: storage) { bytes in
      isIPv6 ? bytes[8] == 0xff : bytes[4] & 0xf0 == 0xe0
    }
  }

  /// `true` if the address is a group that is joined together with a source: 232.0.0.0/8 (RFC 4607) or ff3x::/32 (RFC
  /// 3306).
  package var isSourceSpecific: Bool {
    withUnsafeBytes(of: storage) { bytes in
      isIPv6
        ? bytes[8] == 0xff && bytes[9] >> 4 == 3 && bytes[10] == 0 && bytes[11] == 0 : bytes[4] == 232
    }
  }

  /// `true` if the address is the one of all interfaces: 0.0.0.0 or ::.
  package var isUnspecified: Bool { address == .unspecified(isIPv6: isIPv6) }

  /// `true` if the address is a loopback address: 127.0.0.0/8 or ::1.
  package var isLoopback: Bool {
    withUnsafeBytes(of: storage) { bytes in
      isIPv6 ? bytes[8..<23].allSatisfy { $0 == 0 } && bytes[23] == 1 : bytes[4] == 127
    }
  }

  /// The numeric address without the port.
  package var text: String {
    withUnsafeTemporaryAllocation(of: CChar.self, capacity: 64) { buffer in
      guard let base = buffer.baseAddress else { return "?" }
      let result = withPointer { getnameinfo($0, length, base, 64, nil, 0, NI_NUMERICHOST) }
      return result == 0 ? String(cString: base) : "?"
    }
  }

  /// Returns `true` if packets to both arrive at the same port of the same address, of the same interface where it is
  /// link-local.
  package static func == (a: SocketAddress, b: SocketAddress) -> Bool {
    guard a.length == b.length else { return false }
    return withUnsafeBytes(of: a.storage) { a in
      withUnsafeBytes(of: b.storage) { b in a.elementsEqual(b) }
    }
  }

  /// Lends the address to a system call.
  package func withPointer<R>(_ body: (UnsafePointer<sockaddr>) -> R) -> R {
    withUnsafeBytes(of: storage) { bytes in
      // `storage` is a sockaddr_storage, which begins as a sockaddr does.
      body(bytes.assumingMemoryBound(to: sockaddr.self).baseAddress.unsafelyUnwrapped)
    }
  }
}
