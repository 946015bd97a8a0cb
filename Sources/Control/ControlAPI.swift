import HTTPTypes
import Hummingbird
import Media
import NIOCore
import NIOHTTP1

/// The routes of the control API, version 1.
///
/// | request | body | answer |
/// |---|---|---|
/// | `GET /v1/status` | | ``StreamStatus`` |
/// | `PUT /v1/orientation` | `{"degrees":90,"mirrored":false}` | the same |
/// | `POST /v1/keyframe` | | `{"key_frame":"requested"}` |
/// | `PUT /v1/bitrate` | `{"bits_per_second":2500000}` | the same |
/// | `POST /v1/destinations` | `{"url":"rtp://192.0.2.7:5004"}` | the same, and `session_description` |
/// | `DELETE /v1/destinations` | `{"url":"rtp://192.0.2.7:5004"}` | the same |
///
/// A refusal is a ``ControlFailure``.
struct ControlAPI: Sendable {
  let target: any ControlTarget
  /// The largest body in bytes.
  let bodyLimit: Int

  private static let routes: [String: [HTTPRequest.Method]] = [
    "/v1/status": [.get, .head], "/v1/orientation": [.put], "/v1/keyframe": [.post], "/v1/bitrate": [.put],
    "/v1/destinations": [.post, .delete],
  ]

  func responder() -> RouterResponder<BasicRequestContext> {
    let router = Router(options: .autoGenerateHeadEndpoints)
    router.add(middleware: Refusals(routes: Self.routes))
    let version = router.group("v1")
    version.get("status") { _, _ in Self.answer(target.status()) }
    version.put("orientation") { request, _ in
      let wish = try await OrientationRequest(json: body(of: request))
      try await target.rotate(to: wish.orientation())
      return Self.answer(wish)
    }
    version.post("keyframe") { request, _ in
      _ = try await body(of: request)
      target.requestKeyFrame()
      return Self.answer(KeyFrameAnswer())
    }
    version.put("bitrate") { request, _ in
      let wish = try await BitrateRequest(json: body(of: request))
      try target.changeBitrate(wish.checked())
      return Self.answer(wish)
    }
    version.post("destinations") { request, _ in
      let wish = try await DestinationRequest(json: body(of: request))
      return Self.answer(
        DestinationAnswer(url: wish.url, sessionDescription: try await target.addDestination(wish.url)))
    }
    version.delete("destinations") { request, _ in
      let wish = try await DestinationRequest(json: body(of: request))
      try target.removeDestination(wish.url)
      return Self.answer(wish)
    }
    return router.buildResponder()
  }

  /// The whole body, of which no more is ever kept than the limit.
  private func body(of request: Request) async throws -> [UInt8] {
    let announced = request.headers[.contentLength].flatMap { Int($0) } ?? 0
    guard announced <= bodyLimit else { throw Refusal.tooLarge(limit: bodyLimit) }
    do {
      return Array(try await request.body.collect(upTo: bodyLimit).readableBytesView)
    } catch is NIOTooManyBytesError {
      throw Refusal.tooLarge(limit: bodyLimit)
    }
  }

  static func answer(_ value: some Encodable, status: HTTPResponse.Status = .ok) -> Response {
    Response(
      status: status, headers: [.contentType: "application/json", .cacheControl: "no-store"],
      body: ResponseBody(byteBuffer: ByteBuffer(bytes: ControlJSON.encode(value))))
  }
}

/// A refusal that has an HTTP status of its own.
struct Refusal: Error {
  let status: HTTPResponse.Status
  let failure: ControlFailure

  static func tooLarge(limit: Int) -> Refusal {
    let text = "the body is larger than \(limit) bytes: send only the fields of this request"
    return Refusal(
      status: .contentTooLarge, failure: ControlFailure(text, kind: .usage, field: "body", limit: "\(limit)"))
  }
}

/// Turns every error into JSON.
private struct Refusals: RouterMiddleware {
  typealias Context = BasicRequestContext
  let routes: [String: [HTTPRequest.Method]]

  func handle(
    _ request: Request, context: Context, next: (Request, Context) async throws -> Response
  ) async throws -> Response {
    do {
      return try await next(request, context)
    } catch let error as HTTPParserError {
      // The connection answers that itself, and ends.
      throw error
    } catch let error as HTTPError where error.status == .notFound {
      return notFound(request)
    } catch let refusal as Refusal {
      return ControlAPI.answer(refusal.failure, status: refusal.status)
    } catch {
      let failure = ControlFailure(error)
      return ControlAPI.answer(failure, status: failure.kind.status)
    }
  }

  private func notFound(_ request: Request) -> Response {
    let path = request.uri.path
    guard let methods = routes[path] else {
      let limit = routes.keys.sorted().joined(separator: ", ")
      let failure = ControlFailure(
        "there is no \(path.prefix(80)) here: choose of \(limit)", kind: .usage, field: "path",
        value: String(path.prefix(80)), limit: limit)
      return ControlAPI.answer(failure, status: .notFound)
    }
    let allowed = methods.map(\.rawValue).joined(separator: ", ")
    let method = String(request.method.rawValue.prefix(20))
    let failure = ControlFailure(
      "\(method) is nothing that \(path) does: use \(allowed)", kind: .usage, field: "method", value: method,
      limit: allowed)
    var response = ControlAPI.answer(failure, status: .methodNotAllowed)
    response.headers[.allow] = allowed
    return response
  }
}

extension FailureKind {
  fileprivate var status: HTTPResponse.Status {
    switch self {
    case .usage, .data: .badRequest
    case .noInput, .noHost: .notFound
    case .noPermission: .forbidden
    case .unavailable, .temporary: .serviceUnavailable
    case .software, .system, .cannotCreate, .inputOutput: .internalServerError
    }
  }
}
