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
    public var isLinkLocal: Bool {
      guard let bytes = NetworkInterfaces.bytes(of: text), bytes.count == 16 else { return false }
      return bytes[0] == 0xfe && bytes[1] & 0xc0 == 0x80
    }
    /// Whether it is this machine's own, whichever machine it is.
    public var isLoopback: Bool {
      guard let bytes = NetworkInterfaces.bytes(of: text) else { return false }
      return bytes.count == 4 ? bytes[0] == 127 : bytes.dropLast().allSatisfy { $0 == 0 } && bytes[15] == 1
    }

    /// As the host of a URL, with the interface where it needs one: not as RFC 6874 writes it, but as players read it.
    public var urlHost: String {
      guard isIPv6 else { return text }
      return "[\(text)\(isLinkLocal ? interface.map { "%\($0)" } ?? "" : "")]"
    }

    /// The smaller, the better to connect to.
    fileprivate var rank: Int { isLoopback ? 3 : isLinkLocal ? 2 : isIPv6 ? 1 : 0 }
  }

  /// What people read.
  public var name: String
  /// How it is served.
  public var type: ServiceType
  /// The name of its machine.
  public var host: String
  /// The TCP port.
  public var port: UInt16
  /// The strings of its TXT record (RFC 6763 section 6), as text.
  public var text: [String]
  /// Whether it is this machine's.
  public var isLocal: Bool
  /// Where it can be reached, the best first; never empty.
  public var addresses: [Address]

  /// See the properties.
  public init(
    name: String, type: ServiceType, host: String, port: UInt16, text: [String], isLocal: Bool, addresses: [Address]
  ) {
    (self.name, self.type, self.host, self.port) = (name, type, host, port)
    (self.text, self.isLocal) = (text, isLocal)
    self.addresses = addresses.sorted { ($0.rank, $0.text) < ($1.rank, $1.text) }
  }

  /// The value of a key of its TXT record, the first one of that name whatever its case; nil where it has none.
  public func value(of key: String) -> String? {
    for entry in text {
      let parts = entry.split(separator: "=", maxSplits: 1, omittingEmptySubsequences: false)
      guard parts.count == 2, parts[0].lowercased() == key else { continue }
      return String(parts[1])
    }
    return nil
  }

  /// Whether it says that players must log in.
  public var asksForUser: Bool { value(of: "auth") == "digest" }

  /// The path of its URL, as a URL has it: from `/` on, all that does not belong into one percent-encoded (RFC 3986).
  public var path: String {
    let given = value(of: "path") ?? "/"
    let bytes = Array((given.hasPrefix("/") ? given : "/\(given)").utf8)
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

/// Text that others have written, for a terminal.
public enum TerminalText {
  /// `text` with whatever steers a terminal or the direction of writing spelled out: `\u{1B}`.
  public static func escaped(_ text: String) -> String {
    var result = ""
    for scalar in text.unicodeScalars {
      if isHarmless(scalar) {
        result.unicodeScalars.append(scalar)
      } else {
        result += "\\u{\(String(scalar.value, radix: 16, uppercase: true))}"
      }
    }
    return result
  }

  /// Whether a terminal shows it and does nothing else.
  public static func isHarmless(_ scalar: Unicode.Scalar) -> Bool {
    switch scalar.properties.generalCategory {
    case .control, .format, .surrogate, .lineSeparator, .paragraphSeparator, .privateUse, .unassigned: false
    default: true
    }
  }
}
