import Platform

/// A stream that another machine announces on the network. All values except the interface come from that machine and
/// are untrusted. Texts are unchanged, within limits; ``TerminalText`` makes them safe for a terminal.
package struct DiscoveredService: Hashable, Sendable {
  /// An address of the service.
  package struct Address: Hashable, Sendable {
    /// The numeric address.
    package var text: String
    /// The interface that received the announcement; nil where it no longer exists.
    package var interface: String?

    /// Creates an address; see the properties.
    package init(text: String, interface: String?) { (self.text, self.interface) = (text, interface) }

    /// `true` for an IPv6 address.
    package var isIPv6: Bool { text.contains(":") }
    /// `true` for an address that is valid on its interface only (RFC 4291 section 2.5.6).
    package var isLinkLocal: Bool { IPAddress(text)?.isIPv6LinkLocal == true }
    /// `true` for a loopback address.
    package var isLoopback: Bool { IPAddress(text)?.isLoopback == true }

    /// The address as a URL's host, with the interface where it needs one. The interface has the form that players
    /// accept, not that of RFC 6874.
    package var urlHost: String {
      guard isIPv6 else { return text }
      return "[\(text)\(isLinkLocal ? interface.map { "%\($0)" } ?? "" : "")]"
    }

    /// The rank for connecting; the smallest is the best.
    fileprivate var rank: Int { isLoopback ? 3 : isLinkLocal ? 2 : isIPv6 ? 1 : 0 }
  }

  /// The service's display name: the first part of its service instance name (RFC 6763 section 4.1.1).
  package var name: String
  /// The service type.
  package var type: ServiceType
  /// The host name of the service's machine.
  package var host: String
  /// The TCP port.
  package var port: UInt16
  /// The TXT record.
  package var txtRecord: TXTRecord
  /// `true` if this machine announces the service.
  package var isLocal: Bool
  /// The service's addresses, the best first; never empty.
  package var addresses: [Address]

  /// Creates a service; see the properties.
  package init(
    name: String, type: ServiceType, host: String, port: UInt16, txtRecord: TXTRecord, isLocal: Bool,
    addresses: [Address]
  ) {
    (self.name, self.type, self.host, self.port) = (name, type, host, port)
    (self.txtRecord, self.isLocal) = (txtRecord, isLocal)
    self.addresses = addresses.sorted { ($0.rank, $0.text) < ($1.rank, $1.text) }
  }

  /// `true` if the service says that players must log in.
  package var asksForUser: Bool { txtRecord.value(of: "auth").map { $0.elementsEqual("digest".utf8) } == true }

  /// The path of the service's URL, from `/` on. Other characters than a URL's are percent-encoded byte by byte (RFC
  /// 3986), because values of TXT records may have any encoding.
  package var path: String {
    let slash = UInt8(ascii: "/")
    let given = txtRecord.value(of: "path") ?? []
    let bytes = given.first == slash ? given : [slash] + given
    var encoded = ""
    for (index, byte) in bytes.enumerated() {
      let isEncoded =
        byte == UInt8(ascii: "%") && index + 2 < bytes.count && Self.isHexDigit(bytes[index + 1])
        && Self.isHexDigit(bytes[index + 2])
      if isEncoded || Self.isPathByte(byte) {
        encoded.unicodeScalars.append(Unicode.Scalar(byte))
      } else {
        let hex = String(byte, radix: 16, uppercase: true)
        encoded += hex.count == 1 ? "%0\(hex)" : "%\(hex)"
      }
    }
    return encoded
  }

  /// Returns the service's URL.
  ///
  /// - Parameter login: the part before the host, as in `NAME:PASSWORD@`.
  package func url(login: String = "") -> String {
    "\(type.scheme)://\(login)\(addresses.first?.urlHost ?? host):\(port)\(path)"
  }

  private static func isPathByte(_ byte: UInt8) -> Bool {
    switch byte {
    case UInt8(ascii: "a")...UInt8(ascii: "z"), UInt8(ascii: "A")...UInt8(ascii: "Z"),
      UInt8(ascii: "0")...UInt8(ascii: "9"):
      true
    default: "-._~/!$&()*+,;=:@?".utf8.contains(byte)
    }
  }

  private static func isHexDigit(_ byte: UInt8) -> Bool { Character(Unicode.Scalar(byte)).isHexDigit }
}
