public import Platform

/// The target of a request: the server, or a URL.
public enum RequestTarget: Hashable, Sendable {
  /// The server itself, `*`.
  case server
  /// A presentation or one of its streams.
  case resource(RequestURL)

  /// Parses a request URI: `*`, an absolute URL, or a path alone.
  ///
  /// - Throws: ``RequestURLError`` with the part that cannot be parsed.
  public init(_ text: String) throws(RequestURLError) {
    self = text == "*" ? .server : .resource(try RequestURL(text))
  }
}

/// The reason why a request URI is invalid.
public enum RequestURLError: Failure, Hashable {
  /// A scheme other than rtsp and rtsps, and no path either.
  case scheme(String)
  /// A missing host name or address.
  case host(String)
  /// A port outside 1 to 65535.
  case port(String)
  /// A path with an invalid part: a bad escape, a control character, an escaped slash, `.` or `..`.
  case path(String)

  /// A one-line description for the log.
  public var description: String {
    switch self {
    case .scheme(let text): "the URL \(excerpt(text)) is neither rtsp://… nor rtsps://… nor a path"
    case .host(let text): "no host in the URL \(excerpt(text)); write rtsp://host/path"
    case .port(let text): "a port of \(excerpt(text)) in an RTSP URL: 1 to 65535"
    case .path(let text):
      "the path \(excerpt(text)) in an RTSP URL: escapes are %41, without control characters, %2F, . and .."
    }
  }

  /// The kind of failure.
  public var kind: FailureKind { .data }
}

/// A URL in a request, RFC 2326 section 3.2: absolute, or a path alone as some clients send. User information is
/// ignored.
public struct RequestURL: Hashable, Sendable {
  /// The kind of connection.
  public enum Scheme: String, Hashable, Sendable {
    /// Plain TCP, RFC 2326 section 3.2.
    case rtsp
    /// TLS.
    case rtsps
  }

  /// The scheme; `nil` if the URL is a path.
  public let scheme: Scheme?
  /// The host, with a port if given, as the client wrote it: `192.0.2.1:8554`, `[2001:db8::1]`. `nil` if the URL is a
  /// path.
  public let authority: String?
  /// The presentation's path without escapes, without a slash at its end and without the track: `/camera`.
  public internal(set) var path: String
  /// The stream within the presentation, from `trackID=` at the URL's end; `nil` for the whole presentation.
  public let track: Int?
  /// The text after `?`, as it was sent and without the track; `nil` if there is none.
  public let query: String?

  /// The prefix of a stream's number.
  public static let trackPrefix = "trackID="

  /// Parses an absolute URL or a path, and separates a track at its end.
  ///
  /// - Throws: ``RequestURLError`` with the part that cannot be parsed.
  public init(_ text: String) throws(RequestURLError) {
    let whole = text.utf8[...]
    var rest = whole
    if rest.first == UInt8(ascii: "/"), !rest.dropFirst().starts(with: "/".utf8) {
      (scheme, authority) = (nil, nil)
    } else {
      guard let colon = rest.firstIndex(of: UInt8(ascii: ":")), rest[colon...].starts(with: "://".utf8),
        let scheme = Scheme(rawValue: String(decoding: rest[..<colon].map(\.lowercased), as: UTF8.self))
      else { throw .scheme(text) }
      rest = rest[rest.index(colon, offsetBy: 3)...]
      let end = rest.firstIndex { $0 == UInt8(ascii: "/") || $0 == UInt8(ascii: "?") } ?? rest.endIndex
      self.scheme = scheme
      authority = try Self.authority(rest[..<end], of: text)
      rest = rest[end...]
    }
    let question = rest.firstIndex(of: UInt8(ascii: "?"))
    var segments: [String] = []
    for part in rest[..<(question ?? rest.endIndex)].split(separator: UInt8(ascii: "/")) {
      segments.append(try Self.segment(part, of: text))
    }
    var query = question.map { rest[rest.index(after: $0)...] }
    guard query?.allSatisfy(Self.isURLByte) ?? true else { throw .path(text) }
    var track = segments.last.flatMap(Self.track)
    if track != nil {
      segments.removeLast()
    } else if let found = query, let slash = found.lastIndex(of: UInt8(ascii: "/")),
      let number = Self.track(String(decoding: found[found.index(after: slash)...], as: UTF8.self))
    {
      // Some clients append the track to a base with a query.
      track = number
      query = found[..<slash]
    }
    self.track = track
    self.query = query.map { String(decoding: $0, as: UTF8.self) }
    path = "/" + segments.joined(separator: "/")
  }

  /// Returns the presentation's URL with a slash at its end, to which the tracks' URLs are relative (`Content-Base`).
  ///
  /// - Parameters:
  ///   - authority: The host and port to use if the URL has none.
  ///   - scheme: The scheme to use if the URL has none.
  public func base(authority: String, scheme: Scheme) -> String {
    var text = "\((self.scheme ?? scheme).rawValue)://\(self.authority ?? authority)"
    for byte in path.utf8 {
      let isPlain = byte.isLetterOrDigit || "/-._~!$&'()*+=:@".utf8.contains(byte)
      text += isPlain ? String(UnicodeScalar(byte)) : Self.escaped(byte)
    }
    return text.hasSuffix("/") ? text : text + "/"
  }

  private static func escaped(_ byte: UInt8) -> String {
    let digits = String(byte, radix: 16, uppercase: true)
    return byte < 0x10 ? "%0\(digits)" : "%\(digits)"
  }

  private static func isURLByte(_ byte: UInt8) -> Bool {
    (0x21...0x7e).contains(byte) && !"\"#<>".utf8.contains(byte)
  }

  private static func track(_ segment: String) -> Int? {
    guard segment.hasPrefix(trackPrefix) else { return nil }
    return segment.dropFirst(trackPrefix.count).decimal(digits: 3)
  }

  /// Returns the host and port. Neither can end a header line or a URL.
  private static func authority(_ bytes: Substring.UTF8View, of text: String) throws(RequestURLError) -> String {
    let start = bytes.lastIndex(of: UInt8(ascii: "@")).map { bytes.index(after: $0) } ?? bytes.startIndex
    let hostAndPort = bytes[start...]
    var portStart = hostAndPort.firstIndex(of: UInt8(ascii: ":")) ?? hostAndPort.endIndex
    let isHost: Bool
    if hostAndPort.first == UInt8(ascii: "[") {
      guard let close = hostAndPort.firstIndex(of: UInt8(ascii: "]")) else { throw .host(text) }
      portStart = hostAndPort.index(after: close)
      let address = hostAndPort[hostAndPort.index(after: hostAndPort.startIndex)..<close]
      isHost = !address.isEmpty && address.allSatisfy { $0.isLetterOrDigit || ":.%-_".utf8.contains($0) }
    } else {
      isHost = hostAndPort[..<portStart].allSatisfy { $0.isLetterOrDigit || "-._~".utf8.contains($0) }
    }
    let host = String(decoding: hostAndPort[..<portStart], as: UTF8.self)
    guard isHost, (1...255).contains(host.utf8.count) else { throw .host(text) }
    let portText = String(decoding: hostAndPort[portStart...], as: UTF8.self)
    if portText.isEmpty || portText == ":" { return host }
    guard portText.hasPrefix(":"), let port: UInt16 = portText.dropFirst().decimal(digits: 5), port > 0 else {
      throw .port(portText)
    }
    return "\(host):\(port)"
  }

  /// Returns a path segment without its escapes.
  private static func segment(_ part: Substring.UTF8View, of text: String) throws(RequestURLError) -> String {
    var bytes: [UInt8] = []
    var rest = part
    while let byte = rest.popFirst() {
      guard isURLByte(byte) else { throw .path(text) }
      guard byte == UInt8(ascii: "%") else {
        bytes.append(byte)
        continue
      }
      let digits = rest.prefix(2)
      // UInt8(_:radix:) accepts a sign.
      guard digits.count == 2, digits.allSatisfy(\.isLetterOrDigit),
        let value = UInt8(String(decoding: digits, as: UTF8.self), radix: 16),
        value >= 0x20, value != 0x7f, value != UInt8(ascii: "/")
      else { throw .path(text) }
      bytes.append(value)
      rest = rest.dropFirst(2)
    }
    guard let segment = String(validating: bytes, as: UTF8.self), segment != ".", segment != ".." else {
      throw .path(text)
    }
    return segment
  }
}
