import Media

/// A stream that somebody announces on the network. All of it but the interface is his word, and anybody can say anything:
/// texts are as they came, within limits; ``TerminalText`` makes them fit for a terminal.
public struct DiscoveredService: Hashable, Sendable {
  /// Where it can be reached.
  public struct Address: Hashable, Sendable {
    /// Numeric.
    public var text: String
    /// The interface that it was heard on; nil where that is gone again.
    public var interface: String?

    /// See the properties.
    public init(text: String, interface: String?) { (self.text, self.interface) = (text, interface) }

    /// Whether it is of IPv6.
    public var isIPv6: Bool { text.contains(":") }
    /// Whether it means something on its interface alone (RFC 4291 section 2.5.6).
    public var isLinkLocal: Bool { IPAddress(text)?.isIPv6LinkLocal == true }
    /// Whether it is this machine's own, whichever machine it is.
    public var isLoopback: Bool { IPAddress(text)?.isLoopback == true }

    /// As the host of a URL, with the interface where it needs one: not as RFC 6874 writes it, but as players read it.
    public var urlHost: String {
      guard isIPv6 else { return text }
      return "[\(text)\(isLinkLocal ? interface.map { "%\($0)" } ?? "" : "")]"
    }

    /// The smaller, the better to connect to.
    fileprivate var rank: Int { isLoopback ? 3 : isLinkLocal ? 2 : isIPv6 ? 1 : 0 }
  }

  /// What people read: the first part of its service instance name (RFC 6763 section 4.1.1).
  public var name: String
  /// How it is served.
  public var type: ServiceType
  /// The name of its machine.
  public var host: String
  /// The TCP port.
  public var port: UInt16
  /// What else it says of itself.
  public var txtRecord: TXTRecord
  /// Whether it is this machine's.
  public var isLocal: Bool
  /// Where it can be reached, the best first; never empty.
  public var addresses: [Address]

  /// See the properties.
  public init(
    name: String, type: ServiceType, host: String, port: UInt16, txtRecord: TXTRecord, isLocal: Bool,
    addresses: [Address]
  ) {
    (self.name, self.type, self.host, self.port) = (name, type, host, port)
    (self.txtRecord, self.isLocal) = (txtRecord, isLocal)
    self.addresses = addresses.sorted { ($0.rank, $0.text) < ($1.rank, $1.text) }
  }

  /// Whether it says that players must log in.
  public var asksForUser: Bool { txtRecord.value(of: "auth").map { $0.elementsEqual("digest".utf8) } == true }

  /// The path of its URL, as a URL has it: from `/` on, all that does not belong into one percent-encoded (RFC 3986),
  /// byte by byte: values of TXT records may be of any encoding.
  public var path: String {
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

  /// Its URL.
  ///
  /// - Parameter login: what stands before the host, as in `NAME:PASSWORD@`.
  public func url(login: String = "") -> String {
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
