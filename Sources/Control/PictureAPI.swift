import Credentials
import HTTPTypes
import Hummingbird
import Media
import NIOCore
import Synchronization

/// What there is to see of a camera: a picture, its pictures one after another, and what players need to know. It is for
/// those whose role is ``Role/view``.
///
/// | request | answer |
/// |---|---|
/// | `GET /snapshot.jpg?live=1` | the next picture, a JPEG; with `live` none but the camera's own |
/// | `GET /stream.mjpg?fps=N` | `multipart/x-mixed-replace` of JPEGs, until the client goes |
/// | `GET /camera.sdp?destination=N` | a session description (RFC 8866) |
///
/// All of them behind `/cameras/{camera}` too.
struct PictureAPI: Sendable {
  let target: any ControlTarget
  let camera: @Sendable (ControlContext) throws(Refusal) -> any CameraTarget

  /// What can be done with each path.
  static let routes: [String: [HTTPRequest.Method]] = {
    var routes: [String: [HTTPRequest.Method]] = [:]
    for name in ["snapshot.jpg", "stream.mjpg", "camera.sdp"] {
      routes["/\(name)"] = [.get, .head]
      routes["/cameras/{camera}/\(name)"] = [.get, .head]
    }
    return routes
  }()

  /// How long a picture may take: less than a connection may be idle.
  private static let patience = MediaTime(seconds: 5)
  /// Between parts, which no JPEG has in it: a line of its own.
  private static let boundary = "nightjar"
  /// Frames a second that may be asked for: a slower one would be taken for a connection that is idle.
  static let frameRates = 0.2...120.0

  func add(to router: some RouterMethods<ControlContext>) {
    for group in [router.group(), router.group("cameras/:camera")] {
      group.add(.head, "snapshot.jpg", for: .view) { _, context in try head(context, "image/jpeg") }
      group.add(.get, "snapshot.jpg", for: .view) { request, context in try await snapshot(request, context) }
      group.add(.head, "stream.mjpg", for: .view) { _, context in try head(context, Self.streamType) }
      group.add(.get, "stream.mjpg", for: .view) { request, context in try stream(request, context) }
      group.add(.get, "camera.sdp", for: .view) { request, context in try description(request, context) }
    }
  }

  private static let streamType = "multipart/x-mixed-replace;boundary=\(boundary)"

  /// That there is a camera; no picture is made for it.
  private func head(_ context: ControlContext, _ type: String) throws -> Response {
    _ = try camera(context)
    var response = Response(status: .ok, headers: Self.headers(type, context), body: ResponseBody())
    // Nobody knows the length of what GET would send (RFC 9110 section 8.6).
    response.headers[.contentLength] = nil
    return response
  }

  private func snapshot(_ request: Request, _ context: ControlContext) async throws -> Response {
    let wantsLive = try Self.wantsLive(request)
    let pictures = try camera(context).look(context.peer, isSnapshot: true)
    let picture: ServedPicture
    do {
      picture = try await pictures.next(until: .now() + Self.patience)
    } catch let error as any Failure where error.kind.status.kind == .clientError {
      // A picture that cannot be coded is no fault of who asks for it.
      throw Refusal(
        status: .internalServerError, failure: ControlFailure("\(error)", kind: error.kind))
    }
    var headers = Self.headers("image/jpeg", context)
    if let origin = HTTPField.Name(Self.originField) {
      guard !wantsLive || picture.origin == .live else {
        throw Refusal.notLive(picture.origin, field: origin)
      }
      headers[origin] = picture.origin.rawValue
    }
    pictures.noteSent(picture.bytes.count)
    return Response(
      status: .ok, headers: headers, body: ResponseBody(byteBuffer: ByteBuffer(bytes: picture.bytes)))
  }

  /// The header that says what a picture shows: ``ServedPicture/Origin``.
  private static let originField = "Nightjar-Picture"

  /// Whether a picture that is not the camera's own of now is to be refused.
  private static func wantsLive(_ request: Request) throws(Refusal) -> Bool {
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
    let place = ViewerPlace(try watched.look(context.peer, isSnapshot: false))
    if let refusal = context.admitStream() { throw refusal }
    let name = target.cameras.count > 1 ? watched.status().name : nil
    let body = ResponseBody { writer in
      let began = MediaTime.now()
      var sent = 0
      context.events?.add(.came(viewer: context.peer, camera: name))
      defer {
        place.leave()
        context.events?.add(.left(viewer: context.peer, camera: name, after: .now() - began, pictures: sent))
      }
      var due = MediaTime.zero
      try await writer.write(ByteBuffer(string: "--\(Self.boundary)\r\n"))
      while context.isStillAllowed(.view) {
        try await Self.sleep(until: due)
        let picture: [UInt8]
        do {
          picture = try await place.next(until: .now() + Self.patience).bytes
        } catch let error as any Failure where error.kind == .temporary {
          continue
        } catch {
          // Another pipeline may follow, as after a reload. Whoever waits longer than a connection may is gone. The place
          // of before is nobody's by then: this viewer needs but one.
          place.leave()
          guard let next = try await again(context) else { break }
          place.take(next)
          continue
        }
        due = max(due + interval, .now())
        var part = ByteBuffer()
        part.reserveCapacity(picture.count + 128)
        part.writeString("Content-Type: image/jpeg\r\nContent-Length: \(picture.count)\r\n\r\n")
        part.writeBytes(picture)
        try await writer.write(part)
        // Returns once the client has taken the most of it: until then no other picture is asked for. Viewers show a
        // picture when they have read what follows it.
        try await writer.write(ByteBuffer(string: "\r\n--\(Self.boundary)\r\n"))
        place.noteSent(picture.count)
        sent += 1
      }
      try await writer.finish(nil)
    }
    return Response(status: .ok, headers: Self.headers(Self.streamType, context), body: body)
  }

  /// The camera's pictures again, once it streams again; nil where it does not.
  private func again(_ context: ControlContext) async throws -> (any PictureSequence)? {
    let deadline = MediaTime.now() + Self.patience
    while MediaTime.now() < deadline {
      try await Task.sleep(nanoseconds: 200_000_000)
      if let pictures = try? camera(context).look(context.peer, isSnapshot: false) { return pictures }
    }
    return nil
  }

  private static func sleep(until time: MediaTime) async throws {
    let rest = time - .now()
    if rest > .zero { try await Task.sleep(nanoseconds: UInt64(rest.nanoseconds)) }
  }

  /// From one picture to the next, at least.
  private static func interval(_ request: Request) throws(Refusal) -> MediaTime {
    guard let text = request.uri.queryParameters["fps"] else { return .zero }
    guard let rate = Double(text), frameRates.contains(rate) else {
      throw .parameter("fps", String(text), "a number from \(frameRates.lowerBound) to 120")
    }
    return MediaTime(seconds: 1 / rate)
  }

  private func description(_ request: Request, _ context: ControlContext) throws -> Response {
    let camera = try camera(context)
    var number: Int?
    if let text = request.uri.queryParameters["destination"] {
      guard let given = Int(text), (1...1024).contains(given) else {
        throw Refusal.parameter("destination", String(text), "the number of a destination, from 1")
      }
      number = given
    }
    guard let found = camera.sessionDescription(ofDestination: number) else {
      throw Refusal.noDestination(number, rtsp: rtsp(camera.status().name))
    }
    guard !found.hasKey || context.mayGetKeys else { throw Refusal.keyInTheClear }
    var headers = Self.headers("application/sdp", context)
    headers[.contentDisposition] = "inline; filename=\"camera.sdp\""
    return Response(status: .ok, headers: headers, body: ResponseBody(byteBuffer: ByteBuffer(string: found.text)))
  }

  /// Where the camera is to be seen by RTSP; nil where it is not.
  private func rtsp(_ name: String) -> String? {
    target.status().listeners.first { $0.scheme.hasPrefix("rtsp") }.map { "\($0.scheme)://HOST:\($0.port)/\(name)" }
  }

  /// What no browser keeps, takes for anything else, or gives to pages that have not said where they are from.
  private static func headers(_ type: String, _ context: ControlContext) -> HTTPFields {
    [
      .contentType: type, .cacheControl: "no-store", .xContentTypeOptions: "nosniff",
      .crossOriginResourcePolicy: context.isForAnyPage ? "cross-origin" : "same-origin",
    ]
  }
}

/// A viewer's place among a camera's, which can be left: what is to be sent lives as long as its answer.
private final class ViewerPlace: Sendable {
  private let pictures: Mutex<(any PictureSequence)?>

  init(_ pictures: any PictureSequence) { self.pictures = Mutex(pictures) }

  private var current: (any PictureSequence)? { pictures.withLock { $0 } }

  func next(until deadline: MediaTime) async throws -> ServedPicture {
    guard let current else { throw CancellationError() }
    return try await current.next(until: deadline)
  }

  func noteSent(_ bytes: Int) { current?.noteSent(bytes) }

  func take(_ new: any PictureSequence) { pictures.withLock { $0 = new } }

  func leave() {
    // Let go of outside the lock.
    _ = pictures.withLock { $0.take() }
  }
}

extension Refusal {
  fileprivate static func parameter(_ name: String, _ value: String, _ rule: String) -> Refusal {
    let value = String(value.prefix(40))
    return Refusal(
      status: .badRequest,
      failure: ControlFailure("\(name)=\(value): write \(rule)", kind: .usage, field: name, value: value, limit: rule))
  }

  fileprivate static func notLive(_ origin: ServedPicture.Origin, field: HTTPField.Name) -> Refusal {
    let what =
      switch origin {
      case .live: "the picture is live"
      case .frozen: "the camera delivers the same picture again and again"
      case .placeholder: "the camera delivers no picture, and a placeholder is shown in its place"
      case .substitute: "no camera was found, and the synthetic one is shown in its place"
      }
    return Refusal(
      status: .serviceUnavailable,
      failure: ControlFailure(
        "\(what): /healthz says why; leave live=1 out to get the picture that is shown", kind: .unavailable,
        field: "live", value: "1", limit: ServedPicture.Origin.live.rawValue), headers: [field: origin.rawValue])
  }

  fileprivate static func noDestination(_ number: Int?, rtsp: String?) -> Refusal {
    let what = number.map { "destination \($0)" } ?? "destination that gets H.264"
    let mend =
      rtsp.map { "watch \($0), which tells players by itself" }
      ?? "add one with nightjar ctl add rtp://HOST:PORT, or serve by --rtsp"
    return Refusal(
      status: .notFound,
      failure: ControlFailure("there is no \(what): \(mend)", kind: .noInput, field: "destination"))
  }

  fileprivate static var keyInTheClear: Refusal {
    Refusal(
      status: .forbidden,
      failure: ControlFailure(
        "this description has the stream's key in it, and this connection is not encrypted: ask by --https, or over the "
          + "control socket", kind: .noPermission))
  }
}
