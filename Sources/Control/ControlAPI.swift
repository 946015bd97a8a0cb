import Credentials
import HTTPTypes
import Hummingbird
import Media
import NIOCore
import NIOHTTP1

/// The routes of the control API, version 1: docs/openapi.json describes each.
///
/// What changes something is for those whose role is ``Role/control``, the rest for all: ``RouterMethods/add(_:_:for:_:)``.
///
/// | request | body | answer |
/// |---|---|---|
/// | `GET /v1/status` | | ``BoxStatus`` |
/// | `GET /v1/viewers` | | ``ViewersAnswer``, of all cameras |
/// | `POST /v1/reload` | | ``ReloadAnswer`` |
/// | `GET /v1/cameras/{camera}/status` | | ``StreamStatus`` |
/// | `GET /v1/cameras/{camera}/viewers` | | ``ViewersAnswer`` |
/// | `PUT /v1/cameras/{camera}/orientation` | `{"degrees":90,"mirrored":false}` | the same |
/// | `POST /v1/cameras/{camera}/keyframe` | | `{"key_frame":"requested"}` |
/// | `PUT /v1/cameras/{camera}/bitrate` | `{"bits_per_second":2500000}` | the same |
/// | `POST /v1/cameras/{camera}/destinations` | `{"url":"rtp://192.0.2.7:5004"}` | the same, and `session_description` |
/// | `DELETE /v1/cameras/{camera}/destinations` | `{"url":"rtp://192.0.2.7:5004"}` | the same |
/// | `GET /v1/cameras/{camera}/controls` | | ``CameraControlsAnswer`` |
/// | `PUT /v1/cameras/{camera}/controls` | `{"controls":{"brightness":10}}` | ``CameraControlsAnswer`` |
/// | `PUT /v1/cameras/{camera}/sensor-lock` | `{"locked":true}` | ``CameraControlsAnswer`` |
///
/// ``MetricsAPI`` and ``PictureAPI`` have some more, for those who only look. Those from orientation on without
/// `/cameras/{camera}` mean the only camera; where there are several, they are refused. A refusal
/// is a ``ControlFailure``.
struct ControlAPI: Sendable {
  let target: any ControlTarget
  /// The largest body in bytes.
  let bodyLimit: Int
  /// Whether clients may name files of this machine, as those can that may use the Unix socket.
  let namesFiles: Bool

  typealias Context = ControlContext

  /// What can be done with each path, `{camera}` standing for a name.
  static let routes: [String: [HTTPRequest.Method]] = {
    var routes: [String: [HTTPRequest.Method]] = [
      "/v1/status": [.get, .head], "/v1/viewers": [.get, .head], "/v1/reload": [.post],
      "/v1/cameras/{camera}/status": [.get, .head], "/v1/cameras/{camera}/viewers": [.get, .head],
    ]
    let orders: [String: [HTTPRequest.Method]] = [
      "orientation": [.put], "keyframe": [.post], "bitrate": [.put], "destinations": [.post, .delete],
    ]
    for (order, methods) in orders.merging(CameraControlAPI.orders, uniquingKeysWith: { $1 }) {
      routes["/v1/\(order)"] = methods
      routes["/v1/cameras/{camera}/\(order)"] = methods
    }
    return routes.merging(MetricsAPI.routes) { $1 }.merging(PictureAPI.routes) { $1 }
  }()

  func responder() -> RouterResponder<Context> {
    let router = Router(context: Context.self, options: .autoGenerateHeadEndpoints)
    router.add(middleware: Refusals())
    let version = router.group("v1")
    version.add(.get, "status", for: .read) { _, _ in Self.answer(target.status()) }
    version.add(.get, "viewers", for: .read) { _, _ in
      Self.answer(ViewersAnswer(viewers: target.cameras.flatMap { target.camera($0)?.viewers() ?? [] }))
    }
    version.addChange(.post, "reload") { request, _, what in
      _ = try await body(of: request)
      what("")
      return Self.answer(try await target.reload())
    }
    let camera = version.group("cameras/:camera")
    camera.add(.get, "status", for: .read) { _, context in Self.answer(try self.camera(context).status()) }
    camera.add(.get, "viewers", for: .read) { _, context in
      Self.answer(ViewersAnswer(viewers: try self.camera(context).viewers()))
    }
    addOrders(to: camera)
    addOrders(to: version)
    MetricsAPI(target: target).add(to: router)
    PictureAPI(target: target) { context throws(Refusal) in try self.camera(context) }.add(to: router)
    for group in [camera, version] { CameraControlAPI(api: self).add(to: group) }
    return router.buildResponder()
  }

  private func addOrders(to group: RouterGroup<Context>) {
    group.addChange(.put, "orientation") { request, context, what in
      let camera = try camera(context)
      let wish = try await OrientationRequest(json: body(of: request))
      what("\(wish.degrees) degrees\(wish.mirrored ? ", mirrored" : "")")
      try await camera.rotate(to: wish.orientation())
      return Self.answer(wish)
    }
    group.addChange(.post, "keyframe") { request, context, what in
      let camera = try camera(context)
      _ = try await body(of: request)
      what("")
      camera.requestKeyFrame()
      return Self.answer(KeyFrameAnswer())
    }
    group.addChange(.put, "bitrate") { request, context, what in
      let camera = try camera(context)
      let wish = try await BitrateRequest(json: body(of: request))
      what("\(wish.bitsPerSecond) bit/s")
      try camera.changeBitrate(wish.checked())
      return Self.answer(wish)
    }
    group.addChange(.post, "destinations") { request, context, what in
      let camera = try camera(context)
      let wish = try await DestinationRequest(json: body(of: request))
      what(wish.url)
      if !namesFiles { try wish.refuseFiles() }
      return Self.answer(
        DestinationAnswer(url: wish.url, sessionDescription: try await camera.addDestination(wish.url)))
    }
    group.addChange(.delete, "destinations") { request, context, what in
      let camera = try camera(context)
      let wish = try await DestinationRequest(json: body(of: request))
      what(wish.url)
      try camera.removeDestination(wish.url)
      return Self.answer(wish)
    }
  }

  /// The camera that the path names, or the only one.
  func camera(_ context: Context) throws(Refusal) -> any CameraTarget {
    let names = target.cameras
    if let name = context.parameters.get("camera") {
      guard let camera = target.camera(name) else { throw .noCamera(name, of: names) }
      return camera
    }
    guard let name = names.first else { throw .noCamera("", of: []) }
    guard names.count == 1 else { throw .severalCameras(names) }
    guard let camera = target.camera(name) else { throw .noCamera(name, of: []) }
    return camera
  }

  /// The whole body, of which no more is ever kept than the limit.
  func body(of request: Request) async throws -> [UInt8] {
    let announced = request.headers[.contentLength].flatMap { Int($0) } ?? 0
    guard announced <= bodyLimit else { throw Refusal.tooLarge(limit: bodyLimit) }
    do {
      return Array(try await request.body.collect(upTo: bodyLimit).readableBytesView)
    } catch is NIOTooManyBytesError {
      throw Refusal.tooLarge(limit: bodyLimit)
    }
  }

  /// An answer that no browser keeps, shows as anything else or lets another site have.
  static func answer(_ value: some Encodable, status: HTTPResponse.Status = .ok) -> Response {
    Response(
      status: status, headers: headers, body: ResponseBody(byteBuffer: ByteBuffer(bytes: ControlJSON.encode(value))))
  }

  static let headers: HTTPFields = {
    var headers: HTTPFields = [
      .contentType: "application/json", .cacheControl: "no-store", .xContentTypeOptions: "nosniff",
      .contentSecurityPolicy: "default-src 'none'; frame-ancestors 'none'", .crossOriginResourcePolicy: "same-origin",
    ]
    // A token in a URL is nobody else's to know.
    if let policy = HTTPField.Name("Referrer-Policy") { headers[policy] = "no-referrer" }
    return headers
  }()
}

/// Turns every error into JSON.
private struct Refusals: RouterMiddleware {
  typealias Context = ControlContext

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
      return refusal.response
    } catch {
      let failure = ControlFailure(error)
      return ControlAPI.answer(failure, status: failure.kind.status)
    }
  }

  private func notFound(_ request: Request) -> Response {
    let path = request.uri.path
    guard let methods = ControlAPI.routes[Self.template(of: path)] else {
      let limit = ControlAPI.routes.keys.sorted().joined(separator: ", ")
      let failure = ControlFailure(
        "there is no \(path.prefix(80)) here: choose one of \(limit)", kind: .usage, field: "path",
        value: String(path.prefix(80)), limit: limit)
      return ControlAPI.answer(failure, status: .notFound)
    }
    let allowed = methods.map(\.rawValue).joined(separator: ", ")
    let method = String(request.method.rawValue.prefix(20))
    let failure = ControlFailure(
      "\(method) is nothing that \(path.prefix(80)) does: use \(allowed)", kind: .usage, field: "method", value: method,
      limit: allowed)
    var response = ControlAPI.answer(failure, status: .methodNotAllowed)
    response.headers[.allow] = allowed
    return response
  }

  /// `/v1/cameras/{camera}/status` of `/v1/cameras/nursery/status`.
  private static func template(of path: String) -> String {
    var parts = path.split(separator: "/", omittingEmptySubsequences: false)
    let index = parts.count > 1 && parts[1] == "v1" ? 3 : 2
    if parts.count > index, parts[index - 1] == "cameras", !parts[index].isEmpty { parts[index] = "{camera}" }
    return parts.joined(separator: "/")
  }
}
