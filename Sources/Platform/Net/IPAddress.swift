import Glibc

/// An IP address (RFC 791, RFC 4291), without a port and without a zone.
package struct IPAddress: Hashable, Sendable {
  /// The bytes in network order: four for IPv4, sixteen for IPv6.
  package let bytes: [UInt8]

  /// The length limit of a numeric address: `INET6_ADDRSTRLEN` without its zero byte.
  private static let lengthLimit = 45

  /// Parses a numeric address: four decimal numbers without leading zeros, or RFC 4291 section 2.2. Nil for any other
  /// text, such as an address with a zone (`fe80::1%eth0`).
  package init?(_ text: some StringProtocol) {
    // The C library takes a zero byte as the end, whatever follows.
    guard text.utf8.count <= Self.lengthLimit, !text.utf8.contains(0) else { return nil }
    var bytes = [UInt8](repeating: 0, count: 16)
    if inet_pton(AF_INET, String(text), &bytes) == 1 {
      self.bytes = Array(bytes.prefix(4))
    } else if inet_pton(AF_INET6, String(text), &bytes) == 1 {
      self.bytes = bytes
    } else {
      return nil
    }
  }

  /// Creates an address of its bytes in network order; `nil` unless they are four or sixteen.
  package init?(bytes: [UInt8]) {
    guard bytes.count == 4 || bytes.count == 16 else { return nil }
    self.bytes = bytes
  }

  /// Returns the address of all interfaces.
  package static func unspecified(isIPv6: Bool) -> IPAddress { IPAddress(count: isIPv6 ? 16 : 4) }

  private init(count: Int) { bytes = [UInt8](repeating: 0, count: count) }

  /// The numeric address, as `inet_ntop` writes it.
  package var text: String {
    withUnsafeTemporaryAllocation(of: CChar.self, capacity: Self.lengthLimit + 1) { buffer in
      guard inet_ntop(isIPv6 ? AF_INET6 : AF_INET, bytes, buffer.baseAddress, socklen_t(buffer.count)) != nil,
        let base = buffer.baseAddress
      else { return "?" }
      return String(cString: base)
    }
  }

  /// Returns `host` in the form that precedes a port, also in a URL: an IPv6 address is in brackets (RFC 3986 section
  /// 3.2.2).
  package static func bracketed(_ host: String) -> String { host.contains(":") ? "[\(host)]" : host }

  /// `true` for an IPv6 address.
  package var isIPv6: Bool { bytes.count == 16 }

  /// `true` for a loopback address: 127.0.0.0/8 or ::1.
  package var isLoopback: Bool {
    isIPv6 ? bytes.dropLast().allSatisfy { $0 == 0 } && bytes[15] == 1 : bytes[0] == 127
  }

  /// `true` for an IPv6 link-local address: fe80::/10 (RFC 4291 section 2.5.6).
  package var isIPv6LinkLocal: Bool { isIPv6 && bytes[0] == 0xFE && bytes[1] & 0xC0 == 0x80 }

  /// `true` for a multicast address: 224.0.0.0/4 or ff00::/8.
  package var isMulticast: Bool { isIPv6 ? bytes[0] == 0xFF : bytes[0] & 0xF0 == 0xE0 }
}
