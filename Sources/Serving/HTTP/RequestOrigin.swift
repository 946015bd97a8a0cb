import Glibc
import HTTPTypes
import Hummingbird
import Platform

/// The origin of a request as far as its header shows it: a proxy, another name, a page of another site.
///
/// A client's statements about itself only ever reduce its rights. `Sec-Fetch-…` is Fetch metadata,
/// <https://www.w3.org/TR/fetch-metadata/>: pages cannot write it.
enum RequestOrigin {
  /// The fields that proxies and tunnels add, in lower case, apart from those that begin with `x-forwarded-`. RFC 7239
  /// and RFC 9110 section 7.6.3, nginx, HAProxy, Apache, Cloudflare, Akamai, Fastly, Fly.
  private static let forwardingFields: Set = [
    "forwarded", "via", "x-real-ip", "x-client-ip", "x-cluster-client-ip", "x-original-for", "x-original-host",
    "cf-connecting-ip", "cf-connecting-ipv6", "cf-ray", "true-client-ip", "fastly-client-ip", "fly-client-ip",
  ]

  /// Returns the field by which a proxy or tunnel shows that it has forwarded the request; nil if there is none.
  static func forwardingField(of request: Request) -> String? {
    request.headers.first {
      let name = $0.name.canonicalName
      return name.hasPrefix("x-forwarded-") || forwardingFields.contains(name)
    }?.name.rawName
  }

  /// Returns `true` if the request has this machine's name for itself, or none, as HTTP/1.0 allows. Browsers always
  /// send one.
  static func hasOwnName(_ request: Request) -> Bool { request.head.authority.map { isOwnName(host(of: $0)) } ?? true }

  /// Returns `true` if a page of another site has made a browser send the request.
  ///
  /// Pages of the same machine may, whatever their port: browsers call that the same site, but treat `localhost` and
  /// `127.0.0.1` as two sites. A link that a user follows is not a page's picture. Without `Sec-Fetch-Site`, the page's
  /// address decides (`Origin`, `Referer`). Older browsers do not send that field, and no browser sends it in the clear
  /// to another machine.
  static func isCrossSite(_ request: Request) -> Bool {
    guard let site = request.field("Sec-Fetch-Site") else {
      let hasSource = request.headers[.origin] != nil || request.headers[.referer] != nil
      // Browsers send this field with every link that is followed; no page may add it without a preflight request.
      let isLink = request.field("Upgrade-Insecure-Requests") == "1"
      return hasSource && !isLink && !isOfSameMachine(request)
    }
    let isLink = request.field("Sec-Fetch-Mode") == "navigate" && request.field("Sec-Fetch-Dest") == "document"
    return site == "cross-site" && !isLink && !isOfSameMachine(request)
  }

  /// Returns `true` if a page of the same site or machine has sent the request. `Cross-Origin-Resource-Policy:
  /// same-site` would not do for that: Chromium would keep a picture of `127.0.0.1:8080` from a page of
  /// `127.0.0.1:5000`, as addresses are no domains.
  static func isOfNeighbour(_ request: Request) -> Bool {
    request.field("Sec-Fetch-Site") == "same-site" || isOfSameMachine(request)
  }

  /// Returns `true` if the sending page has the host of the request's target, or both are this machine's names for
  /// itself.
  private static func isOfSameMachine(_ request: Request) -> Bool {
    guard let page = request.headers[.origin] ?? request.headers[.referer], let authority = request.head.authority,
      let start = page.firstRange(of: "://")?.upperBound
    else { return false }
    let pageHost = host(of: String(page[start...].prefix { $0 != "/" && $0 != "?" && $0 != "#" }))
    let ownHost = host(of: authority)
    return pageHost == ownHost || isOwnName(pageHost) && isOwnName(ownHost)
  }

  /// Returns the host of `HOST:PORT`, in lower case, without the brackets of IPv6 and without a last dot.
  private static func host(of authority: String) -> Substring {
    var host = Substring(authority.lowercased())
    if host.hasPrefix("[") {
      guard let end = host.firstIndex(of: "]") else { return "" }
      return host[host.index(after: host.startIndex)..<end]
    }
    host = host.prefix { $0 != ":" }
    if host.hasSuffix(".") { host.removeLast() }
    return host
  }

  /// Returns `true` if `host` is a name or address that leads only to the requesting machine itself. No other machine
  /// can have such a name, and a forwarder of requests for another address of this machine says so.
  private static func isOwnName(_ host: Substring) -> Bool {
    if host == "localhost" || host.hasSuffix(".localhost") { return true }
    // A zone's name follows a %, and no loopback address has one.
    if !host.contains("%"), let address = PeerAddress(String(host)) { return address.isLoopback }
    return !host.isEmpty && String(host) == ownName
  }

  /// The machine's host name, in lower case.
  private static var ownName: String? {
    var buffer = [CChar](repeating: 0, count: 256)
    guard gethostname(&buffer, buffer.count - 1) == 0, buffer[0] != 0 else { return nil }
    return String(cBuffer: buffer).lowercased()
  }
}

extension Request {
  /// The value of a field that `HTTPTypes` has no name for.
  func field(_ name: String) -> String? { HTTPField.Name(name).flatMap { headers[$0] } }
}
