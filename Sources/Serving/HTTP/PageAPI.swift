import CPage
import HTTPTypes
import Hummingbird
import NIOCore
import Platform

/// The page for browsers, and what belongs to it. It holds no secrets: anybody who reaches the server gets it, and logs
/// in on it.
///
/// | request | answer |
/// |---|---|
/// | `GET /` | the page |
/// | `GET /page/{file}` | its style, modules, icon and manifest |
/// | `GET /ca.crt` | the certificate of the host's own authority, for devices that shall trust it; 404 without one |
struct PageAPI: Sendable {
  let target: any ControlTarget

  /// One file of the page.
  private struct File: Sendable {
    let type: String
    let bytes: ByteBuffer

    init(_ type: String, _ bytes: [UInt8]) { (self.type, self.bytes) = (type, ByteBuffer(bytes: bytes)) }

    /// The file of that name in Sources/Serving/Page.
    init(_ type: String, of name: String) {
      let file = page_file_named(name)
      self.type = type
      bytes = ByteBuffer(bytes: UnsafeBufferPointer(start: file.bytes, count: file.count))
    }
  }

  /// The methods that each path allows.
  static let routes: [String: [HTTPRequest.Method]] = ["/": [.get, .head], "/ca.crt": [.get, .head]].merging(
    Dictionary(uniqueKeysWithValues: files.keys.map { ("/page/\($0)", [.get, .head]) })
  ) { $1 }

  private static let page = File("text/html; charset=utf-8", of: "index.html")
  private static let script = "text/javascript; charset=utf-8"

  private static let files: [String: File] = Dictionary(
    uniqueKeysWithValues: types.map { name, type in (name, File(type, of: name)) })

  /// The media types of the files.
  private static let types: [String: String] = [
    "page.css": "text/css; charset=utf-8",
    "app.js": script,
    "alarm.js": script,
    "alerts.js": script,
    "elements.js": script,
    "events.js": script,
    "liveness.js": script,
    "login.js": script,
    "mjpeg.js": script,
    "phones.js": script,
    "player.js": script,
    "push.js": script,
    "reach.js": script,
    "strings.js": script,
    "viewers.js": script,
    "whep.js": script,
    "worker.js": script,
    // iPhones take no SVG.
    "icon.png": "image/png",
    "icon.svg": "image/svg+xml",
    "manifest.webmanifest": "application/manifest+json",
  ]

  /// Only what the server itself sends is executed, shown or asked.
  private static let policy = [
    "default-src 'none'", "script-src 'self'", "style-src 'self'", "img-src 'self' blob:", "media-src 'self' blob:",
    "connect-src 'self'", "manifest-src 'self'", "base-uri 'none'", "form-action 'none'", "frame-ancestors 'none'",
  ].joined(separator: "; ")

  /// Returns `true` if a request needs no log-in.
  static func isPublic(_ request: Request) -> Bool {
    let path = request.uri.path
    return path == "/" || path == "/ca.crt" || path.hasPrefix("/page/")
  }

  func add(to router: some RouterMethods<ControlContext>) {
    router.add(.get, "/", for: .read) { _, _ in Self.answer(Self.page) }
    router.add(.get, "ca.crt", for: .read) { _, _ in
      guard let authority = target.authority else { throw HTTPRefusal.noAuthority }
      return Self.answer(File("application/x-x509-ca-cert", authority))
    }
    for (name, file) in Self.files {
      router.add(.get, "page/\(name)", for: .read) { _, _ in Self.answer(file) }
    }
  }

  private static func answer(_ file: File) -> Response {
    var headers: HTTPFields = [
      .contentType: file.type, .cacheControl: "no-cache", .xContentTypeOptions: "nosniff",
      .contentSecurityPolicy: policy, .crossOriginResourcePolicy: "same-origin",
    ]
    if let field = HTTPField.Name("Referrer-Policy") { headers[field] = "no-referrer" }
    return Response(status: .ok, headers: headers, body: ResponseBody(byteBuffer: file.bytes))
  }
}

extension HTTPRefusal {
  fileprivate static var noAuthority: HTTPRefusal {
    HTTPRefusal(
      status: .notFound,
      failure: ControlFailure(
        "this host has no authority of its own: make one with \(ServiceAccount.command("certificate make"))",
        kind: .noInput))
  }
}
