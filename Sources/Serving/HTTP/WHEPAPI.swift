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
/// | `OPTIONS /whep` | 204, and `Accept-Post` with the type of an offer |
/// | `POST /whep` with an offer (`application/sdp`) | 201, the answer, and `Location` of the session |
/// | `DELETE /whep/{session}` | 200: the session has ended |
///
/// They exist behind `/cameras/{camera}` too.
struct WHEPAPI: Sendable {
  let camera: @Sendable (ControlContext) throws(HTTPRefusal) -> any CameraTarget

  /// The methods that each path allows.
  static let routes: [String: [HTTPRequest.Method]] = [
    "/whep": [.post, .options], "/whep/{session}": [.delete],
    "/cameras/{camera}/whep": [.post, .options], "/cameras/{camera}/whep/{session}": [.delete],
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
      group.add(.options, "whep", for: .view) { _, context in
        _ = try camera(context)
        return Self.capabilities
      }
      group.add(.delete, "whep/:session", for: .view) { _, context in try end(context) }
    }
  }

  private static var capabilities: Response {
    var headers: HTTPFields = [.allow: "OPTIONS, POST"]
    if let field = HTTPField.Name("Accept-Post") { headers[field] = offerType }
    return Response(status: .noContent, headers: headers)
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
      throw HTTPRefusal.offer(.noDescription)
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
      throw HTTPRefusal.offer(error)
    } catch let error as PeerServerError {
      throw HTTPRefusal.peers(error)
    }
  }

  private func end(_ context: ControlContext) throws -> Response {
    let name = context.parameters.get("session") ?? ""
    guard try camera(context).endWatching(name) else {
      throw HTTPRefusal(
        status: .notFound,
        failure: ControlFailure("there is no such session: it has ended", kind: .noInput, field: "session"))
    }
    return Response(status: .ok, headers: HTTPFields.unstored("text/plain", context), body: ResponseBody())
  }
}

extension HTTPRefusal {
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
      }
    return HTTPRefusal(
      status: status, failure: ControlFailure("\(error)", kind: error.kind, field: field),
      headers: error == .notServed ? [:] : [.retryAfter: "\(HTTPRefusal.retryAfter)"])
  }

  fileprivate static func offer(_ error: OfferError) -> HTTPRefusal {
    let status: HTTPResponse.Status =
      switch error {
      case .noCodec: .notAcceptable
      case .length: .contentTooLarge
      default: .badRequest
      }
    return HTTPRefusal(status: status, failure: ControlFailure("\(error)", kind: .usage, field: "offer"))
  }
}
