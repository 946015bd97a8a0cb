import Platform

/// An IP address in the form of a session description, RFC 8866 section 9 (`IP4-address`, `IP6-address`).
public struct ConnectionAddress: Hashable, Sendable, CustomStringConvertible {
  /// The address type: `IP4` or `IP6`.
  public let family: Family
  /// The address as text, without a zone.
  public let description: String
  /// `true` for a multicast group: 224.0.0.0/4 or ff00::/8.
  public let isMulticast: Bool

  /// The `addrtype` of RFC 8866.
  public enum Family: String, Sendable {
    /// IPv4.
    case ip4 = "IP4"
    /// IPv6.
    case ip6 = "IP6"
  }

  /// The IPv4 loopback address, 127.0.0.1.
  public static let loopback = ConnectionAddress(family: .ip4, description: "127.0.0.1", isMulticast: false)
  /// The IPv6 loopback address, ::1.
  public static let loopback6 = ConnectionAddress(family: .ip6, description: "::1", isMulticast: false)

  /// Parses a numeric address as `inet_ntop` writes it; `nil` for a host name or any other text.
  ///
  /// A zone (`fe80::1%eth0`) is removed, because it names an interface of this host, which no receiver knows.
  public init?(_ text: String) {
    let zoneless = String(text.prefix { $0 != "%" })
    guard text.utf8.count <= 64, let address = IPAddress(zoneless), address.isIPv6 || zoneless == text else {
      return nil
    }
    self.init(family: address.isIPv6 ? .ip6 : .ip4, description: zoneless, isMulticast: address.isMulticast)
  }

  private init(family: Family, description: String, isMulticast: Bool) {
    self.family = family
    self.description = description
    self.isMulticast = isMulticast
  }
}
