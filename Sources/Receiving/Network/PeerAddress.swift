import CLinux
import Glibc
import Platform

/// An address and a port of another host, as the kernel takes them: a `sockaddr_in` or a `sockaddr_in6`.
struct PeerAddress: Hashable, Sendable {
  /// The address without its port.
  let address: IPAddress
  private let bytes: [UInt8]

  /// The limit of addresses that a name gives.
  static let limit = 8

  /// Creates an address of a `sockaddr` with `count` bytes; nil for other families than IP.
  init?(_ pointer: UnsafePointer<sockaddr>, count: Int) {
    let bytes = Array(UnsafeRawBufferPointer(start: pointer, count: count))
    let isIPv6 = CInt(pointer.pointee.sa_family) == AF_INET6
    // Behind the port comes IPv4's address, or IPv6's flow and then its address.
    guard isIPv6 || CInt(pointer.pointee.sa_family) == AF_INET, bytes.count >= (isIPv6 ? 28 : 16),
      let address = IPAddress(bytes: Array(isIPv6 ? bytes[8..<24] : bytes[4..<8]))
    else { return nil }
    (self.address, self.bytes) = (address, bytes)
  }

  /// Creates an address and a port. `interface` is the index of the interface for an IPv6 address that needs one.
  init(_ address: IPAddress, port: UInt16, interface: UInt32 = 0) {
    self.address = address
    if address.isIPv6 {
      var name = sockaddr_in6()
      name.sin6_family = sa_family_t(AF_INET6)
      name.sin6_port = port.bigEndian
      name.sin6_scope_id = interface
      withUnsafeMutableBytes(of: &name.sin6_addr) { $0.copyBytes(from: address.bytes) }
      bytes = withUnsafeBytes(of: name) { Array($0) }
    } else {
      var name = sockaddr_in()
      name.sin_family = sa_family_t(AF_INET)
      name.sin_port = port.bigEndian
      withUnsafeMutableBytes(of: &name.sin_addr) { $0.copyBytes(from: address.bytes) }
      bytes = withUnsafeBytes(of: name) { Array($0) }
    }
  }

  private init(_ address: IPAddress, _ bytes: [UInt8]) { (self.address, self.bytes) = (address, bytes) }

  /// The address family: `AF_INET` or `AF_INET6`.
  var family: CInt { address.isIPv6 ? AF_INET6 : AF_INET }

  /// The port.
  var port: UInt16 { UInt16(bytes[2]) << 8 | UInt16(bytes[3]) }

  /// Returns this address with another port.
  func with(port: UInt16) -> PeerAddress {
    var bytes = bytes
    (bytes[2], bytes[3]) = (UInt8(port >> 8), UInt8(port & 0xff))
    return PeerAddress(address, bytes)
  }

  /// Calls `body` with the address in the kernel's form.
  func withSocketAddress<Result>(_ body: (UnsafePointer<sockaddr>, socklen_t) -> Result) -> Result {
    bytes.withUnsafeBytes { bytes in
      // Never empty: a `sockaddr_in` at least.
      body(bytes.baseAddress.unsafelyUnwrapped.assumingMemoryBound(to: sockaddr.self), socklen_t(bytes.count))
    }
  }

  /// Returns the addresses of `host`, in the resolver's order. Blocks until `deadline` at most, or until `stop` fires; a name server
  /// that hangs is left to another thread.
  ///
  /// - Throws: ``ReceiverError/host(_:)``, ``ReceiverError/time(_:)``, ``ReceiverError/stopped``.
  static func all(
    of host: String, port: UInt16, by deadline: Instant, stop: borrowing Interrupt
  ) throws(ReceiverError) -> [PeerAddress] {
    let call: BlockingCall<[PeerAddress], ReceiverError>
    do throws(SystemFailure) {
      call = try BlockingCall("nj-resolve") { () throws(ReceiverError) in try look(up: host, port: port) }
    } catch {
      throw .connection("\(error)")
    }
    while !stop.hasFired() {
      let now = Instant.now()
      // An end that is wanted is looked for between short waits.
      if let result = call.result(by: min(deadline, now + .milliseconds(100))) { return try result.get() }
      guard now < deadline else { throw .time("the name server does not answer for \(host)") }
    }
    throw .stopped
  }

  private static func look(up host: String, port: UInt16) throws(ReceiverError) -> [PeerAddress] {
    var hints = addrinfo()
    hints.ai_socktype = CInt(SOCK_STREAM.rawValue)
    var list: UnsafeMutablePointer<addrinfo>?
    let result = getaddrinfo(host, "\(port)", &hints, &list)
    guard result == 0 else {
      throw .host("\(host): \(gai_strerror(result).map { String(cString: $0) } ?? "error \(result)")")
    }
    defer { freeaddrinfo(list) }
    var addresses: [PeerAddress] = []
    var next = list
    while let entry = next?.pointee, addresses.count < limit {
      next = entry.ai_next
      if let pointer = entry.ai_addr, let found = PeerAddress(pointer, count: Int(entry.ai_addrlen)) {
        addresses.append(found)
      }
    }
    guard !addresses.isEmpty else { throw .host("\(host) has no address") }
    return addresses
  }
}
