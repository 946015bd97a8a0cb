import HTTPTypes
import Hummingbird
import NIOCore
import Platform
import Streaming

/// The routes of a camera's pictures: one picture, a stream of pictures, and the session description for players. They
/// need the role ``Role/view``.
///
/// | request | answer |
/// |---|---|
/// | `GET /snapshot.jpg?live=1` | the next picture, a JPEG; with `live` none but the camera's own |
/// | `GET /stream.mjpg?fps=N` | `multipart/x-mixed-replace` of JPEGs, until the client leaves |
/// | `GET /camera.sdp?destination=N` | a session description (RFC 8866) |
///
/// All of them exist behind `/cameras/{camera}` too.
struct PictureAPI: Sendable {
  let target: any ControlTarget
  let camera: @Sendable (ControlContext) throws(HTTPRefusal) -> any CameraTarget

  /// The methods that each path allows.
  static let routes: [String: [HTTPRequest.Method]] = {
    var routes: [String: [HTTPRequest.Method]] = [:]
    for name in ["snapshot.jpg", "stream.mjpg", "camera.sdp"] {
      routes["/\(name)"] = [.get, .head]
      routes["/cameras/{camera}/\(name)"] = [.get, .head]
    }
    return routes
  }()

  /// The text between parts, a line of its own: no JPEG contains it.
  private static let boundary = "nightjar"
  /// The frame rates that may be requested, in frames a second: a slower stream would look like an idle connection.
  static let frameRates = 0.2...120.0

  func add(to router: some RouterMethods<ControlContext>) {
    for group in [router.group(), router.group("cameras/:camera")] {
      group.add(.head, "snapshot.jpg", for: .view) { request, context in try snapshotHead(request, context) }
      group.add(.get, "snapshot.jpg", for: .view) { request, context in try await snapshot(request, context) }
      group.add(.head, "stream.mjpg", for: .view) { request, context in
        _ = try Self.interval(request)
        return try head(context, Self.streamType)
      }
      group.add(.get, "stream.mjpg", for: .view) { request, context in try stream(request, context) }
      group.add(.get, "camera.sdp", for: .view) { request, context in try description(request, context) }
    }
  }

  private static let streamType = "multipart/x-mixed-replace;boundary=\(boundary)"

  /// Checks that there is a camera; makes no picture.
  private func head(_ context: ControlContext, _ type: String) throws -> Response {
    _ = try camera(context)
    var response = Response(status: .ok, headers: HTTPFields.unstored(type, context), body: ResponseBody())
    // The length of the answer to GET is unknown (RFC 9110 section 8.6).
    response.headers[.contentLength] = nil
    return response
  }

  /// Answers as GET would, by the camera's present state.
  private func snapshotHead(_ request: Request, _ context: ControlContext) throws -> Response {
    let wantsLive = try Self.wantsLive(request)
    var response = try head(context, "image/jpeg")
    response.headers.append(contentsOf: try Self.mark(camera(context).pictureOrigin, wantsLive: wantsLive))
    return response
  }

  private func snapshot(_ request: Request, _ context: ControlContext) async throws -> Response {
    let wantsLive = try Self.wantsLive(request)
    let watched = try camera(context)
    let pictures = try watched.look(context.peer, isSnapshot: true)
    let picture: ServedPicture
    do {
      picture = try await pictures.next(until: .now() + LiveAnswer.patience)
    } catch let error as any Failure where error.kind.status.kind == .clientError {
      // A picture that cannot be encoded is not the client's fault.
      throw HTTPRefusal(
        status: .internalServerError, failure: ControlFailure("\(error)", kind: error.kind))
    }
    var headers = HTTPFields.unstored("image/jpeg", context)
    headers.append(contentsOf: try Self.mark(picture.origin, wantsLive: wantsLive))
    pictures.noteSent(1, bytes: picture.bytes.count)
    if watched.noteSnapshot(context.peer, bytes: picture.bytes.count) {
      let name = target.cameras.count > 1 ? watched.status().name : nil
      context.events?.add(.took(viewer: context.peer, camera: name))
    }
    return Response(
      status: .ok, headers: headers, body: ResponseBody(byteBuffer: ByteBuffer(bytes: picture.bytes)))
  }

  /// The header that says what a picture shows: ``ServedPicture/Origin``.
  private static let originField = "Nightjar-Picture"

  /// Returns the header for a picture.
  ///
  /// - Throws: the refusal of a picture that is not the camera's current one, if no other is wanted.
  private static func mark(_ origin: ServedPicture.Origin, wantsLive: Bool) throws(HTTPRefusal) -> HTTPFields {
    guard let name = HTTPField.Name(originField) else { return [:] }
    guard !wantsLive || origin == .live else { throw .notLive(origin, field: name) }
    return [name: origin.rawValue]
  }

  /// Returns `true` if a picture other than the camera's current one is to be refused.
  private static func wantsLive(_ request: Request) throws(HTTPRefusal) -> Bool {
    guard let text = request.uri.queryParameters["live"] else { return false }
    switch text {
    case "1", "true": return true
    case "0", "false": return false
    default: throw .parameter("live", String(text), "1 or 0")
    }
  }

  private func stream(_ request: Request, _ context: ControlContext) throws -> Response {
    let interval = try Self.interval(request)
    let watched = try camera(context)
    let answer = LiveAnswer(
      kind: .pictures, context: context, target: target, camera: target.cameras.count > 1 ? watched.status().name : nil,
      interval: interval)
    let body = try answer.body {
      try camera(context).look(context.peer, isSnapshot: false)
    } begin: { writer in
      try await writer.write(ByteBuffer(string: "--\(Self.boundary)\r\n"))
    } write: { picture, writer in
      var part = ByteBuffer()
      part.reserveCapacity(picture.bytes.count + 128)
      part.writeString("Content-Type: image/jpeg\r\nContent-Length: \(picture.bytes.count)\r\n\r\n")
      part.writeBytes(picture.bytes)
      try await writer.write(part)
      // Viewers show a picture when they have read what follows it.
      try await writer.write(ByteBuffer(string: "\r\n--\(Self.boundary)\r\n"))
      return (1, picture.bytes.count)
    }
    return Response(status: .ok, headers: HTTPFields.unstored(Self.streamType, context), body: body)
  }

  /// Returns the minimum time from one picture to the next.
  private static func interval(_ request: Request) throws(HTTPRefusal) -> Duration {
    guard let text = request.uri.queryParameters["fps"] else { return .zero }
    guard let rate = Double(text), frameRates.contains(rate) else {
      throw .parameter("fps", String(text), "a number from \(frameRates.lowerBound) to 120")
    }
    return Duration(seconds: 1 / rate)
  }

  private func description(_ request: Request, _ context: ControlContext) throws -> Response {
    let camera = try camera(context)
    var number: Int?
    if let text = request.uri.queryParameters["destination"] {
      guard let given = Int(text), (1...1024).contains(given) else {
        throw HTTPRefusal.parameter("destination", String(text), "the number of a destination, from 1")
      }
      number = given
    }
    guard let found = camera.sessionDescription(ofDestination: number) else {
      throw HTTPRefusal.noDestination(number, rtsp: rtsp(camera.status().name))
    }
    guard !found.hasKey || context.mayGetKeys else { throw HTTPRefusal.keyInTheClear }
    var headers = HTTPFields.unstored("application/sdp", context)
    headers[.contentDisposition] = "inline; filename=\"camera.sdp\""
    return Response(status: .ok, headers: headers, body: ResponseBody(byteBuffer: ByteBuffer(string: found.text)))
  }

  /// Returns the camera's RTSP address; nil if it has none.
  private func rtsp(_ name: String) -> String? {
    target.status().listeners.first { $0.scheme.hasPrefix("rtsp") }.map { "\($0.scheme)://HOST:\($0.port)/\(name)" }
  }
}

extension HTTPRefusal {
  fileprivate static func parameter(_ name: String, _ value: String, _ rule: String) -> HTTPRefusal {
    let value = String(value.prefix(40))
    return HTTPRefusal(
      status: .badRequest,
      failure: ControlFailure("\(name)=\(value): write \(rule)", kind: .usage, field: name, value: value, limit: rule))
  }

  fileprivate static func notLive(_ origin: ServedPicture.Origin, field: HTTPField.Name) -> HTTPRefusal {
    let what =
      switch origin {
      case .live: "the picture is live"
      case .frozen: "the camera delivers the same picture again and again"
      case .placeholder: "the camera delivers no picture; the stream shows a placeholder"
      case .substitute: "there is no camera; the stream shows the synthetic one"
      }
    return HTTPRefusal(
      status: .serviceUnavailable,
      failure: ControlFailure(
        "\(what): /healthz says why; leave live=1 out to get this picture", kind: .unavailable,
        field: "live", value: "1", limit: ServedPicture.Origin.live.rawValue), headers: [field: origin.rawValue])
  }

  fileprivate static func noDestination(_ number: Int?, rtsp: String?) -> HTTPRefusal {
    let what = number.map { "destination \($0)" } ?? "destination that gets H.264 or HEVC"
    let mend =
      rtsp.map { "watch \($0), which describes itself" }
      ?? "add one with nightjar ctl add rtp://HOST:PORT, or serve by --rtsp"
    return HTTPRefusal(
      status: .notFound,
      failure: ControlFailure("there is no \(what): \(mend)", kind: .noInput, field: "destination"))
  }

  fileprivate static var keyInTheClear: HTTPRefusal {
    HTTPRefusal(
      status: .forbidden,
      failure: ControlFailure(
        "this description holds the stream's key, and this connection is not encrypted: use --https or the control socket",
        kind: .noPermission))
  }
}
