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

  /// `true` for a link-local address of either family: 169.254.0.0/16 (RFC 3927) or fe80::/10.
  package var isLinkLocal: Bool { isIPv6 ? isIPv6LinkLocal : bytes[0] == 169 && bytes[1] == 254 }

  /// `true` for a multicast address: 224.0.0.0/4 or ff00::/8.
  package var isMulticast: Bool { isIPv6 ? bytes[0] == 0xFF : bytes[0] & 0xF0 == 0xE0 }

  /// `true` for an address that a host of the internet may have, by the registries of RFC 6890: no address of this host, of
  /// a private network, of a link, of documentation or of a group. An IPv4 address within an IPv6 address counts as itself.
  package var isPublic: Bool {
    guard isIPv6 else { return !Self.special4.contains { $0.contains(bytes) } }
    if Self.embedding.contains(where: { $0.contains(bytes) }) {
      return IPAddress(bytes: Array(bytes[12...]))?.isPublic ?? false
    }
    // Global unicast is 2000::/3.
    return bytes[0] & 0xE0 == 0x20 && !Self.special6.contains { $0.contains(bytes) }
  }

  /// The addresses that begin with the same bits.
  private struct Prefix {
    let bytes: [UInt8]
    let length: Int

    init(_ text: String, _ length: Int) { (bytes, self.length) = (IPAddress(text)?.bytes ?? [], length) }

    func contains(_ address: [UInt8]) -> Bool {
      (0..<length).allSatisfy { bit in (bytes[bit / 8] ^ address[bit / 8]) & (0x80 >> UInt8(bit % 8)) == 0 }
    }
  }

  /// NAT64 (RFC 6052), by which a host without IPv4 reaches hosts of IPv4, and IPv4-mapped addresses.
  private static let embedding = [Prefix("64:ff9b::", 96), Prefix("::ffff:0:0", 96)]
  private static let special4 = [
    Prefix("0.0.0.0", 8), Prefix("10.0.0.0", 8), Prefix("100.64.0.0", 10), Prefix("127.0.0.0", 8),
    Prefix("169.254.0.0", 16), Prefix("172.16.0.0", 12), Prefix("192.0.0.0", 24), Prefix("192.0.2.0", 24),
    Prefix("192.88.99.0", 24), Prefix("192.168.0.0", 16), Prefix("198.18.0.0", 15), Prefix("198.51.100.0", 24),
    Prefix("203.0.113.0", 24), Prefix("224.0.0.0", 3),
  ]
  /// Teredo and other protocols' own addresses, documentation, and 6to4, which leads to an IPv4 address of any kind.
  private static let special6 = [
    Prefix("2001::", 23), Prefix("2001:db8::", 32), Prefix("2002::", 16), Prefix("3fff::", 20),
  ]
}
