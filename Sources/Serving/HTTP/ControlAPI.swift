import HTTPTypes
import Hummingbird
import NIOCore
import NIOHTTP1
import Platform

/// The routes of the control API, version 1: docs/openapi.json describes each.
///
/// Changes need the role ``Role/control``; any role may use the other routes of this table:
/// ``RouterMethods/add(_:_:for:_:)``.
///
/// | request | body | answer |
/// |---|---|---|
/// | `GET /v1/status` | | ``ApplianceStatus`` |
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
/// | `GET /v1/cameras/{camera}/audio` | | ``StreamStatus/Sound`` |
/// | `PUT /v1/cameras/{camera}/audio` | `{"muted":true}`, `{"gain_db":6}` | ``StreamStatus/Sound`` |
///
/// ``MetricsAPI``, ``PictureAPI`` and ``MP3API`` add routes that only read, ``PhonesAPI`` those of phones, and
/// ``EventsAPI`` those of events, and ``PushAPI`` those of browsers whose page is closed. The routes from orientation on also
/// exist without `/cameras/{camera}`: they mean the only camera, and are refused if there are several. A refusal is a
/// ``ControlFailure``.
struct ControlAPI: Sendable {
  let target: any ControlTarget
  /// The largest body in bytes.
  let bodyLimit: Int
  /// `true` if clients may name files of this machine, as clients of the Unix socket may.
  let namesFiles: Bool

  typealias Context = ControlContext

  /// The methods that each path allows; `{camera}` stands for a name.
  static let routes: [String: [HTTPRequest.Method]] = {
    var routes: [String: [HTTPRequest.Method]] = [
      "/v1/status": [.get, .head], "/v1/viewers": [.get, .head], "/v1/reload": [.post],
      "/v1/cameras/{camera}/status": [.get, .head], "/v1/cameras/{camera}/viewers": [.get, .head],
    ]
    let orders: [String: [HTTPRequest.Method]] = [
      "orientation": [.put], "keyframe": [.post], "bitrate": [.put], "destinations": [.post, .delete],
    ]
    let all = orders.merging(CameraControlAPI.orders) { $1 }.merging(SoundAPI.orders) { $1 }
    for (order, methods) in all {
      routes["/v1/\(order)"] = methods
      routes["/v1/cameras/{camera}/\(order)"] = methods
    }
    return routes.merging(MetricsAPI.routes) { $1 }.merging(PictureAPI.routes) { $1 }
      .merging(MP3API.routes) { $1 }.merging(WHEPAPI.routes) { $1 }
      .merging(PageAPI.routes) { $1 }.merging(PhonesAPI.routes) { $1 }.merging(EventsAPI.routes) { $1 }
      .merging(PushAPI.routes) { $1 }
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
    PictureAPI(target: target) { context throws(HTTPRefusal) in try self.camera(context) }.add(to: router)
    MP3API(target: target) { context throws(HTTPRefusal) in try self.camera(context) }.add(to: router)
    WHEPAPI { context throws(HTTPRefusal) in try self.camera(context) }.add(to: router)
    PageAPI(target: target).add(to: router)
    PhonesAPI(api: self).add(to: version)
    EventsAPI(api: self).add(to: version)
    PushAPI(api: self).add(to: version)
    for group in [camera, version] {
      CameraControlAPI(api: self).add(to: group)
      SoundAPI(api: self).add(to: group)
    }
    return router.buildResponder()
  }

  private func addOrders(to group: RouterGroup<Context>) {
    group.addChange(.put, "orientation") { request, context, what in
      let camera = try camera(context)
      let change = try await OrientationRequest(json: body(of: request))
      what("\(change.degrees) degrees\(change.mirrored ? ", mirrored" : "")")
      try await camera.rotate(to: change.orientation())
      return Self.answer(change)
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
      let change = try await BitrateRequest(json: body(of: request))
      what("\(change.bitsPerSecond) bit/s")
      try camera.changeBitrate(change.checked())
      return Self.answer(change)
    }
    group.addChange(.post, "destinations") { request, context, what in
      let camera = try camera(context)
      let change = try await DestinationRequest(json: body(of: request))
      what(change.url)
      if !namesFiles { try change.refuseFiles() }
      return Self.answer(
        DestinationAnswer(url: change.url, sessionDescription: try await camera.addDestination(change.url)))
    }
    group.addChange(.delete, "destinations") { request, context, what in
      let camera = try camera(context)
      let change = try await DestinationRequest(json: body(of: request))
      what(change.url)
      try camera.removeDestination(change.url)
      return Self.answer(change)
    }
  }

  /// Returns the camera that the path names, or the only one.
  func camera(_ context: Context) throws(HTTPRefusal) -> any CameraTarget {
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

  /// Returns the whole body, of which at most the limit is ever kept.
  func body(of request: Request) async throws -> [UInt8] {
    let announced = request.headers[.contentLength].flatMap { Int($0) } ?? 0
    guard announced <= bodyLimit else { throw HTTPRefusal.tooLarge(limit: bodyLimit) }
    do {
      return Array(try await request.body.collect(upTo: bodyLimit).readableBytesView)
    } catch is NIOTooManyBytesError {
      throw HTTPRefusal.tooLarge(limit: bodyLimit)
    }
  }

  /// Returns an answer that no browser stores, shows as another type or passes to another site.
  static func answer(_ value: some Encodable, status: HTTPResponse.Status = .ok) -> Response {
    Response(
      status: status, headers: headers, body: ResponseBody(byteBuffer: ByteBuffer(bytes: ControlJSON.encode(value))))
  }

  static let headers: HTTPFields = {
    var headers: HTTPFields = [
      .contentType: "application/json", .cacheControl: "no-store", .xContentTypeOptions: "nosniff",
      .contentSecurityPolicy: "default-src 'none'; frame-ancestors 'none'", .crossOriginResourcePolicy: "same-origin",
    ]
    // Keeps a token in a URL from other sites.
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
      // The connection itself answers this error, and ends.
      throw error
    } catch let error as HTTPError where error.status == .notFound {
      return notFound(request)
    } catch let refusal as HTTPRefusal {
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
      "\(path.prefix(80)) does not allow \(method): use \(allowed)", kind: .usage, field: "method", value: method,
      limit: allowed)
    var response = ControlAPI.answer(failure, status: .methodNotAllowed)
    response.headers[.allow] = allowed
    return response
  }

  /// Returns `/v1/cameras/{camera}/status` for `/v1/cameras/nursery/status`.
  private static func template(of path: String) -> String {
    var parts = path.split(separator: "/", omittingEmptySubsequences: false)
    let index = parts.count > 1 && parts[1] == "v1" ? 3 : 2
    if parts.count > index, parts[index - 1] == "cameras", !parts[index].isEmpty { parts[index] = "{camera}" }
    if parts.count > 2, parts[parts.count - 2] == "whep", parts.last != "" { parts[parts.count - 1] = "{session}" }
    if parts.count == 5, parts[2] == "events", parts[3] != "" { parts[3] = "{event}" }
    if parts.count == 4, parts[2] == "phones", parts[3] != "codes", parts[3] != "" { parts[3] = "{phone}" }
    return parts.joined(separator: "/")
  }
}
