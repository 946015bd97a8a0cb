import HTTPTypes
import Hummingbird
import NIOCore
import Platform
import Streaming
import WebRTC

/// The routes by which a browser gets a camera's picture and sound by WebRTC (draft-ietf-wish-whep). They need the role
/// ``Role/view``.
///
/// | request | answer |
/// |---|---|
/// | `GET /whep`, `HEAD /whep`, `OPTIONS /whep` | 200 without content; the type of an offer as `Content-Type` and as
/// `Accept-Post` |
/// | `POST /whep` with an offer (`application/sdp`) | 201, the answer, and `Location` of the session |
/// | `GET /whep/{session}`, `HEAD /whep/{session}` | 204 while the session exists |
/// | `DELETE /whep/{session}` | 200: the session has ended |
///
/// They exist behind `/cameras/{camera}` too.
struct WHEPAPI: Sendable {
  let camera: @Sendable (ControlContext) throws(HTTPRefusal) -> any CameraTarget

  /// The methods that each path allows.
  static let routes: [String: [HTTPRequest.Method]] = [
    "/whep": [.get, .head, .post, .options], "/whep/{session}": [.get, .head, .delete],
    "/cameras/{camera}/whep": [.get, .head, .post, .options],
    "/cameras/{camera}/whep/{session}": [.get, .head, .delete],
  ]

  /// Returns `true` for a request of these routes: it changes nothing that others see.
  static func isWatching(_ request: Request) -> Bool {
    let parts = request.uri.path.split(separator: "/")
    let rest = parts.first == "cameras" ? parts.dropFirst(2) : parts[...]
    return rest.first == "whep"
  }

  static let offerType = "application/sdp"

  func add(to router: some RouterMethods<ControlContext>) {
    for group in [router.group(), router.group("cameras/:camera")] {
      group.add(.post, "whep", for: .view) { request, context in try await answer(request, context) }
      for method in [HTTPRequest.Method.get, .options] {
        group.add(method, "whep", for: .view) { _, context in
          _ = try camera(context)
          return Self.capabilities
        }
      }
      group.add(.get, "whep/:session", for: .view) { _, context in
        guard try camera(context).isWatching(context.session) else { throw HTTPRefusal.noSession }
        return Response(status: .noContent)
      }
      group.add(.delete, "whep/:session", for: .view) { _, context in try end(context) }
    }
  }

  private static var capabilities: Response {
    var headers: HTTPFields = [.allow: "GET, HEAD, OPTIONS, POST", .contentType: offerType]
    if let field = HTTPField.Name("Accept-Post") { headers[field] = offerType }
    return Response(status: .ok, headers: headers, body: ResponseBody())
  }

  private func answer(_ request: Request, _ context: ControlContext) async throws -> Response {
    let type = request.headers[.contentType].map { $0.prefix { $0 != ";" }.lowercased() }
    guard type == Self.offerType else { throw HTTPRefusal.noOffer(type ?? "none") }
    let limit = SessionOffer.Limits.bytes
    guard (request.headers[.contentLength].flatMap { Int($0) } ?? 0) <= limit else {
      throw HTTPRefusal.tooLarge(limit: limit)
    }
    let body: ByteBuffer
    do {
      body = try await request.body.collect(upTo: limit)
    } catch is NIOTooManyBytesError {
      throw HTTPRefusal.tooLarge(limit: limit)
    }
    guard let offer = String(validating: body.readableBytesView, as: UTF8.self) else {
      throw HTTPRefusal.offer(.noDescription, request.uri.path)
    }
    do {
      let role = context.roleAfterwards
      // By now: while the offer came, the camera's pipeline may have been replaced.
      let answer = try camera(context).watch(offer, context.peer) { role().map { $0 >= .view } ?? false }
      var headers = HTTPFields.unstored(Self.offerType, context)
      headers[.location] = "\(request.uri.path)/\(answer.name)"
      return Response(
        status: .created, headers: headers, body: ResponseBody(byteBuffer: ByteBuffer(string: answer.text)))
    } catch let error as OfferError {
      throw HTTPRefusal.offer(error, request.uri.path)
    } catch let error as PeerServerError {
      if case .noH264(_, let refusal) = error {
        throw HTTPRefusal.offer(error, of: .notAcceptable, request.uri.path, retryAfter: refusal.retryAfter)
      }
      throw HTTPRefusal.peers(error)
    }
  }

  private func end(_ context: ControlContext) throws -> Response {
    guard try camera(context).endWatching(context.session) else { throw HTTPRefusal.noSession }
    return Response(status: .ok, headers: HTTPFields.unstored("text/plain", context), body: ResponseBody())
  }
}

extension ControlContext {
  /// The session in the path.
  fileprivate var session: String { parameters.get("session") ?? "" }
}

extension HTTPRefusal {
  fileprivate static var noSession: HTTPRefusal {
    HTTPRefusal(
      status: .notFound,
      failure: ControlFailure("there is no such session: it has ended", kind: .noInput, field: "session"))
  }

  fileprivate static func noOffer(_ type: String) -> HTTPRefusal {
    HTTPRefusal(
      status: .unsupportedMediaType,
      failure: ControlFailure(
        "an offer is sent as \(WHEPAPI.offerType)", kind: .usage, field: "content-type", value: String(type.prefix(40)),
        limit: WHEPAPI.offerType))
  }

  fileprivate static func peers(_ error: PeerServerError) -> HTTPRefusal {
    let (status, field): (HTTPResponse.Status, String) =
      switch error {
      case .tooMany: (.tooManyRequests, "sessions")
      case .replaced: (.serviceUnavailable, "camera")
      case .notServed: (.notImplemented, "webrtc-port")
      case .noH264: (.notAcceptable, "offer")
      }
    return HTTPRefusal(
      status: status, failure: ControlFailure("\(error)", kind: error.kind, field: field),
      headers: error == .notServed ? [:] : [.retryAfter: "\(HTTPRefusal.retryAfter)"])
  }

  /// Returns the refusal of an offer that was sent to `path`; without a codec in common, it names the pictures beside it.
  fileprivate static func offer(_ error: OfferError, _ path: String) -> HTTPRefusal {
    let status: HTTPResponse.Status =
      switch error {
      case .noCodec: .notAcceptable
      case .length: .contentTooLarge
      default: .badRequest
      }
    if case .noCodec = error { return offer(error, of: status, path) }
    return HTTPRefusal(status: status, failure: ControlFailure("\(error)", kind: .usage, field: "offer"))
  }

  /// Returns the refusal of an offer without a codec that the browser gets; it names the pictures beside it.
  ///
  /// - Parameter retryAfter: the seconds after which another offer may be answered; nil if none will.
  fileprivate static func offer(
    _ error: any Failure, of status: HTTPResponse.Status, _ path: String, retryAfter: Int? = nil
  ) -> HTTPRefusal {
    let pictures = path.hasSuffix("whep") ? "; pictures as JPEG: \(path.dropLast(4))stream.mjpg" : ""
    var headers: HTTPFields = [:]
    headers[.retryAfter] = retryAfter.map { "\($0)" }
    return HTTPRefusal(
      status: status, failure: ControlFailure("\(error)\(pictures)", kind: .usage, field: "offer"), headers: headers)
  }
}
