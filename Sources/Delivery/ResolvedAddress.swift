import Glibc
import Platform

/// An address of a host, in the form that the kernel takes.
struct ResolvedAddress: Sendable {
  /// The address without its port.
  let address: IPAddress
  let isIPv6: Bool
  /// A `sockaddr_in` or `sockaddr_in6`.
  let bytes: [UInt8]

  /// Returns the addresses of `host`, in the resolver's order. Blocks until `deadline` at most; a name server that hangs is left
  /// to another thread.
  ///
  /// - Throws: ``ExchangeError``.
  static func all(of host: String, port: UInt16, by deadline: Instant) throws(ExchangeError) -> [ResolvedAddress] {
    let call: BlockingCall<[ResolvedAddress], ExchangeError>
    do throws(SystemFailure) {
      call = try BlockingCall("nj-resolve") { () throws(ExchangeError) in try look(up: host, port: port) }
    } catch {
      throw .system("\(error)")
    }
    guard let result = call.result(by: deadline) else { throw .time("its name server does not answer") }
    return try result.get()
  }

  private static func look(up host: String, port: UInt16) throws(ExchangeError) -> [ResolvedAddress] {
    var hints = addrinfo()
    hints.ai_socktype = CInt(SOCK_STREAM.rawValue)
    var list: UnsafeMutablePointer<addrinfo>?
    let result = getaddrinfo(host, "\(port)", &hints, &list)
    guard result == 0 else {
      throw .system(gai_strerror(result).map { "its name: \(String(cString: $0))" } ?? "its name: error \(result)")
    }
    defer { freeaddrinfo(list) }
    var addresses: [ResolvedAddress] = []
    var next = list
    while let entry = next?.pointee, addresses.count < 16 {
      next = entry.ai_next
      guard entry.ai_family == AF_INET || entry.ai_family == AF_INET6, let address = entry.ai_addr else { continue }
      let bytes = Array(UnsafeRawBufferPointer(start: address, count: Int(entry.ai_addrlen)))
      let isIPv6 = entry.ai_family == AF_INET6
      // Behind the port comes IPv4's address, or IPv6's flow and then its address.
      guard bytes.count >= (isIPv6 ? 24 : 8),
        let found = IPAddress(bytes: Array(isIPv6 ? bytes[8..<24] : bytes[4..<8]))
      else { continue }
      addresses.append(ResolvedAddress(address: found, isIPv6: isIPv6, bytes: bytes))
    }
    return addresses
  }
}

/// The reason why an exchange with another host fails; a later one may succeed.
package enum ExchangeError: Error {
  /// Nothing came in time.
  case time(String)
  /// The system, the network or TLS refuses, or the answer is none.
  case system(String)
  /// The other side has ended the connection.
  case ended
  /// The program ends.
  case stopped

  /// `true` unless time or the program has ended the exchange.
  var isOfOtherSide: Bool {
    switch self {
    case .system, .ended: true
    case .time, .stopped: false
    }
  }

  /// The reason in words, for people.
  package var reason: String {
    switch self {
    case .time(let what): what
    case .system(let reason): reason
    case .ended: "it has ended the connection"
    case .stopped: "nightjar ends"
    }
  }
}
