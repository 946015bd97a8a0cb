import Platform

/// The URL of a stream, RFC 2326 section 3.2: `rtsp://host/path` or `rtsps://host/path`, with user name and password if
/// they are needed.
public struct StreamURL: Hashable, Sendable, CustomStringConvertible {
  /// `true` for rtsps: the connection is encrypted.
  public let isEncrypted: Bool
  /// The host's name or address, without brackets.
  public let host: String
  /// The TCP port; 554 and 322 are the defaults.
  public let port: UInt16
  /// The path with its query, as it is sent; it begins with a slash.
  public let path: String
  /// The user name, without escapes; nil if there is none.
  public let user: String?
  /// The password, without escapes; nil if there is none.
  public let password: String?

  /// The limit of a URL in bytes.
  public static let lengthLimit = 2048

  /// Parses a URL.
  ///
  /// - Throws: ``ReceiverError/url(_:)`` with the part that cannot be parsed.
  public init(_ text: String) throws(ReceiverError) {
    guard text.utf8.count <= Self.lengthLimit, text.utf8.allSatisfy({ $0 > 0x20 && $0 < 0x7f }) else {
      throw .url("a URL has at most \(Self.lengthLimit) ASCII characters without spaces; write others as %41")
    }
    let lower = text.lowercased()
    guard let scheme = ["rtsp://", "rtsps://"].first(where: { lower.hasPrefix($0) }) else {
      throw .url("\(Self.shown(text)) is no URL of a stream; write rtsp://host/path or rtsps://host/path")
    }
    isEncrypted = scheme == "rtsps://"
    let rest = text.dropFirst(scheme.count)
    let authority = rest.prefix { $0 != "/" && $0 != "?" && $0 != "#" }
    let tail = rest.dropFirst(authority.count).prefix { $0 != "#" }
    path = tail.hasPrefix("/") ? String(tail) : "/" + tail
    var place = authority
    if let at = authority.lastIndex(of: "@") {
      let information = authority[..<at]
      let parts = information.split(separator: ":", maxSplits: 1, omittingEmptySubsequences: false)
      guard let user = Self.unescaped(parts[0]), let password = parts.count > 1 ? Self.unescaped(parts[1]) : "" else {
        throw .url("the user name or password of the URL has a malformed escape; write @ as %40")
      }
      (self.user, self.password) = (user, password)
      place = authority[authority.index(after: at)...]
    } else {
      (user, password) = (nil, nil)
    }
    (host, port) = try Self.parse(place, defaultPort: isEncrypted ? 322 : 554)
  }

  private static func parse(_ place: Substring, defaultPort: UInt16) throws(ReceiverError) -> (String, UInt16) {
    var host = place
    var port: Substring?
    if place.hasPrefix("["), let end = place.firstIndex(of: "]") {
      host = place[place.index(after: place.startIndex)..<end]
      let rest = place[place.index(after: end)...]
      guard rest.isEmpty || rest.hasPrefix(":") else { throw .url("\(shown(place)) is no host with a port") }
      port = rest.isEmpty ? nil : rest.dropFirst()
      guard IPAddress(host)?.isIPv6 == true else { throw .url("\(shown(host)) in brackets is no IPv6 address") }
    } else if let colon = place.firstIndex(of: ":") {
      (host, port) = (place[..<colon], place[place.index(after: colon)...])
      guard !place[place.index(after: colon)...].contains(":") else {
        throw .url("an IPv6 address in a URL has brackets: rtsp://[\(shown(place))]/")
      }
    }
    guard !host.isEmpty else { throw .url("no host in the URL; write rtsp://host/path") }
    guard let port else { return (String(host), defaultPort) }
    guard (1...5).contains(port.utf8.count), port.utf8.allSatisfy({ (0x30...0x39).contains($0) }),
      let number = UInt16(port), number > 0
    else { throw .url("a port of \(shown(port)): choose 1 to 65535") }
    return (String(host), number)
  }

  private static func unescaped(_ text: Substring) -> String? {
    var bytes: [UInt8] = []
    var rest = Array(text.utf8)[...]
    while let byte = rest.popFirst() {
      guard byte == UInt8(ascii: "%") else {
        bytes.append(byte)
        continue
      }
      guard rest.count >= 2, let value = UInt8(String(decoding: rest.prefix(2), as: UTF8.self), radix: 16),
        value >= 0x20
      else { return nil }
      bytes.append(value)
      rest = rest.dropFirst(2)
    }
    return String(validating: bytes, as: UTF8.self)
  }

  private static func shown(_ text: some StringProtocol) -> String { "\"\(text.prefix(60))\"" }

  /// The URL as it is sent, without user name and password.
  public var description: String {
    let standard: UInt16 = isEncrypted ? 322 : 554
    let place = IPAddress.bracketed(host) + (port == standard ? "" : ":\(port)")
    return "\(isEncrypted ? "rtsps" : "rtsp")://\(place)\(path)"
  }
}
