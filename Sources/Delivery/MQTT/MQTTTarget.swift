import Platform

/// The URL of an MQTT broker, in its parts.
package struct MQTTTarget: Hashable, Sendable {
  /// `true` for mqtts: MQTT over TLS.
  package let isSecure: Bool
  /// The name or address, without brackets.
  package let host: String
  /// The port.
  package let port: UInt16

  /// The longest URL in bytes.
  package static let limit = 300

  /// Parses `mqtt://HOST[:PORT]` or `mqtts://HOST[:PORT]`; nil for any other text, such as one with a user or a path.
  package init?(_ text: String) {
    guard text.utf8.count <= Self.limit else { return nil }
    let lower = text.lowercased()
    isSecure = lower.hasPrefix("mqtts://")
    guard isSecure || lower.hasPrefix("mqtt://") else { return nil }
    var place = text.dropFirst(isSecure ? 8 : 7)
    if place.hasSuffix("/") { place = place.dropLast() }
    guard let (host, port) = WebhookTarget.parts(of: place, isSecure ? 8883 : 1883) else { return nil }
    (self.host, self.port) = (host, port)
  }

  /// The host, with its port if that is another than the usual one.
  package var authority: String {
    let host = IPAddress.bracketed(host)
    return port == (isSecure ? 8883 : 1883) ? host : "\(host):\(port)"
  }

  /// `true` if nothing between nightjar and the broker leaves this host.
  package var isLoopback: Bool { host.lowercased() == "localhost" || IPAddress(host)?.isLoopback == true }
}
