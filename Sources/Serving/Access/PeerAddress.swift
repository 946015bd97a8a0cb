import Platform

/// The address that a request comes from, without its port.
package struct PeerAddress: Hashable, Sendable {
  /// 16 bytes in network order; IPv4 as an IPv4-mapped IPv6 address, RFC 4291 section 2.5.5.2.
  let bytes: [UInt8]

  /// Creates an address from 4 bytes (IPv4) or 16 (IPv6), in network order; nil for another count.
  package init?(_ bytes: [UInt8]) {
    switch bytes.count {
    case 4: self.bytes = Self.mappedPrefix + bytes
    case 16: self.bytes = bytes
    default: return nil
    }
  }

  /// Creates an address from a numeric one, as in `192.0.2.7`, `2001:db8::7` or `fe80::7%eth0`; nil for anything else.
  package init?(_ text: String) {
    guard let address = IPAddress(text.prefix { $0 != "%" }) else { return nil }
    self.init(address.bytes)
  }

  /// The network that one attacker controls at once: a single IPv4 address, the first 64 bits of IPv6. Link-local
  /// addresses share these bits all over the world, and count whole.
  package var network: [UInt8] {
    let isLinkLocal = bytes[0] == 0xFE && bytes[1] & 0xC0 == 0x80
    return bytes.starts(with: Self.mappedPrefix) || isLinkLocal ? bytes : Array(bytes.prefix(8))
  }

  /// `true` for this machine's loopback address: 127.0.0.0/8 or ::1. The kernel admits no such address from a network.
  package var isLoopback: Bool {
    bytes.starts(with: Self.mappedPrefix) ? bytes[12] == 127 : bytes == [UInt8](repeating: 0, count: 15) + [1]
  }

  private static let mappedPrefix = [UInt8](repeating: 0, count: 10) + [0xFF, 0xFF]
}
