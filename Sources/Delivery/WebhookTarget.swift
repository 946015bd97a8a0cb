import Platform

/// The URL of a webhook, in its parts.
package struct WebhookTarget: Hashable, Sendable {
  /// `true` for https.
  package let isSecure: Bool
  /// The name or address, without brackets.
  package let host: String
  /// The port.
  package let port: UInt16
  /// The path with its query, from its slash on. It may be a secret.
  package let path: String

  /// The longest URL in bytes.
  package static let limit = 2000

  /// Parses `https://HOST[:PORT][/PATH][?QUERY]`; nil for any other text, such as one with a user, a fragment, or characters
  /// that a URL has encoded.
  package init?(_ text: String) {
    guard text.utf8.count <= Self.limit, text.utf8.allSatisfy({ (0x21...0x7E).contains($0) && $0 != 0x23 }) else {
      return nil
    }
    let lower = text.prefix(8).lowercased()
    isSecure = lower == "https://"
    guard isSecure || lower.hasPrefix("http://") else { return nil }
    let rest = text.dropFirst(isSecure ? 8 : 7)
    let place = rest.prefix { $0 != "/" && $0 != "?" }
    let tail = rest.dropFirst(place.count)
    path = tail.hasPrefix("/") ? String(tail) : "/\(tail)"
    guard let (host, port) = Self.parts(of: place, isSecure ? 443 : 80) else { return nil }
    (self.host, self.port) = (host, port)
  }

  /// Returns the host and the port of `HOST:PORT` or `[IPV6]:PORT`.
  static func parts(of place: Substring, _ standardPort: UInt16) -> (host: String, port: UInt16)? {
    var (host, port): (Substring, Substring?)
    if place.hasPrefix("[") {
      guard let end = place.firstIndex(of: "]") else { return nil }
      host = place[place.index(after: place.startIndex)..<end]
      let behind = place[place.index(after: end)...]
      guard IPAddress(host)?.isIPv6 == true, behind.isEmpty || behind.hasPrefix(":") else { return nil }
      port = behind.isEmpty ? nil : behind.dropFirst()
    } else {
      let both = place.split(separator: ":", omittingEmptySubsequences: false)
      guard both.count <= 2 else { return nil }
      (host, port) = (both[0], both.count == 2 ? both[1] : nil)
      let isName = host.utf8.allSatisfy { byte in
        (0x30...0x39).contains(byte) || (0x41...0x5A).contains(byte) || (0x61...0x7A).contains(byte)
          || [0x2D, 0x2E, 0x5F].contains(byte)
      }
      guard isName, (1...253).contains(host.utf8.count) else { return nil }
    }
    guard let port else { return (String(host), standardPort) }
    let isNumber = port.utf8.allSatisfy { (0x30...0x39).contains($0) }
    guard isNumber, let number = UInt16(port), number > 0 else { return nil }
    return (String(host), number)
  }

  /// The value of the header `Host`.
  package var authority: String {
    let host = IPAddress.bracketed(host)
    return port == (isSecure ? 443 : 80) ? host : "\(host):\(port)"
  }
}
