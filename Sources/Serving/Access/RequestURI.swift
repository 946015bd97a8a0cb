/// The URI of a request, for the comparison with the URI that a client hashed.
///
/// RFC 7616 section 3.4.6 requires both to be the same resource. Players write it differently, so these count as the
/// same:
///
/// - the absolute URI and its path alone, because either may stand in a request line;
/// - hosts and schemes in other case, the default port written or left out, a slash at the end, and a `name:password@`
///   that was left in;
/// - a stream of a presentation and the presentation's own URI (`rtsp://host/camera/trackID=0`, `rtsp://host/camera/`):
///   live555, and VLC with it, hashes the latter for every request. A user that may see the one may see the other; the
///   method is hashed all the same.
package struct RequestURI {
  /// `scheme://host:port`, in normal form; nil for a path alone.
  private let authority: [UInt8]?
  /// The path with its query, without a slash at the end.
  private let path: [UInt8]

  package init(_ uri: [UInt8]) {
    guard let colon = Self.firstRange(of: "://", in: uri) else {
      authority = nil
      path = Self.withoutSlash(uri[...])
      return
    }
    let scheme = uri[..<colon.lowerBound].map(Hexadecimal.lowercased)
    let rest = uri[colon.upperBound...]
    let end = rest.firstIndex { $0 == UInt8(ascii: "/") || $0 == UInt8(ascii: "?") } ?? rest.endIndex
    var host = rest[..<end]
    if let at = host.lastIndex(of: UInt8(ascii: "@")) { host = host[(at + 1)...] }
    var name = host.map(Hexadecimal.lowercased)
    let port = Self.defaultPorts[String(decoding: scheme, as: UTF8.self)].map { Array(":\($0)".utf8) } ?? [0x3A]
    if name.suffix(port.count) == port[...] { name.removeLast(port.count) }
    authority = scheme + Array("://".utf8) + name
    path = Self.withoutSlash(rest[end...])
  }

  /// Returns `true` if a digest over `self` is valid for a request of `request`.
  package func covers(_ request: RequestURI) -> Bool {
    if let authority, let other = request.authority, authority != other { return false }
    if path == request.path { return true }
    // Exactly one more segment: the server's treatment of "..", or of an escaped slash, is not known here.
    guard !path.isEmpty, request.path.starts(with: path + [UInt8(ascii: "/")]) else { return false }
    let segment = request.path.dropFirst(path.count + 1)
    return !segment.isEmpty && !segment.starts(with: [UInt8(ascii: ".")])
      && !segment.contains { "/%?#\\".utf8.contains($0) }
  }

  private static let defaultPorts = ["rtsp": 554, "rtspu": 554, "rtsps": 322, "http": 80, "https": 443]

  private static func withoutSlash(_ path: ArraySlice<UInt8>) -> [UInt8] {
    Array(path.last == UInt8(ascii: "/") ? path.dropLast() : path)
  }

  private static func firstRange(of text: String, in bytes: [UInt8]) -> Range<Int>? {
    let pattern = Array(text.utf8)
    guard bytes.count >= pattern.count else { return nil }
    for start in 0...(bytes.count - pattern.count) where bytes[start..<(start + pattern.count)] == pattern[...] {
      return start..<(start + pattern.count)
    }
    return nil
  }
}
