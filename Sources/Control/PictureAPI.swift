import HTTPTypes
import Hummingbird
import Media
import NIOCore
import Synchronization

/// What there is to see of a camera: a picture, its pictures one after another, and what players need to know.
///
/// | request | answer |
/// |---|---|
/// | `GET /snapshot.jpg` | the next picture, a JPEG |
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
      group.head("snapshot.jpg") { _, context in try head(context, "image/jpeg") }
      group.get("snapshot.jpg") { _, context in try await snapshot(context) }
      group.head("stream.mjpg") { _, context in try head(context, Self.streamType) }
      group.get("stream.mjpg") { request, context in try stream(request, context) }
      group.get("camera.sdp") { request, context in try description(request, context) }
    }
  }

  private static let streamType = "multipart/x-mixed-replace;boundary=\(boundary)"

  /// That there is a camera; no picture is made for it.
  private func head(_ context: ControlContext, _ type: String) throws -> Response {
    _ = try camera(context)
    var response = Response(status: .ok, headers: Self.headers(type), body: ResponseBody())
    // Nobody knows the length of what GET would send (RFC 9110 section 8.6).
    response.headers[.contentLength] = nil
    return response
  }

  private func snapshot(_ context: ControlContext) async throws -> Response {
    let pictures = try camera(context).look("snapshot \(context.client)", isSnapshot: true)
    let picture: [UInt8]
    do {
      picture = try await pictures.next(until: .now() + Self.patience)
    } catch let error as any Failure where error.kind.status.kind == .clientError {
      // A picture that cannot be coded is no fault of who asks for it.
      throw Refusal(
        status: .internalServerError, failure: ControlFailure("\(error)", kind: error.kind))
    }
    pictures.noteSent(picture.count)
    return Response(
      status: .ok, headers: Self.headers("image/jpeg"), body: ResponseBody(byteBuffer: ByteBuffer(bytes: picture)))
  }

  private func stream(_ request: Request, _ context: ControlContext) throws -> Response {
    let interval = try Self.interval(request)
    let place = ViewerPlace(try camera(context).look("mjpeg \(context.client)", isSnapshot: false))
    if let refusal = context.admitStream() { throw refusal }
    let body = ResponseBody { writer in
      defer { place.leave() }
      var due = MediaTime.zero
      try await writer.write(ByteBuffer(string: "--\(Self.boundary)\r\n"))
      while context.isStillAllowed() {
        try await Self.sleep(until: due)
        let picture: [UInt8]
        do {
          picture = try await place.next(until: .now() + Self.patience)
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
      }
      try await writer.finish(nil)
    }
    return Response(status: .ok, headers: Self.headers(Self.streamType), body: body)
  }

  /// The camera's pictures again, once it streams again; nil where it does not.
  private func again(_ context: ControlContext) async throws -> (any PictureSequence)? {
    let deadline = MediaTime.now() + Self.patience
    while MediaTime.now() < deadline {
      try await Task.sleep(nanoseconds: 200_000_000)
      if let pictures = try? camera(context).look("mjpeg \(context.client)", isSnapshot: false) { return pictures }
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
    var headers = Self.headers("application/sdp")
    headers[.contentDisposition] = "inline; filename=\"camera.sdp\""
    return Response(status: .ok, headers: headers, body: ResponseBody(byteBuffer: ByteBuffer(string: found.text)))
  }

  /// Where the camera is to be seen by RTSP; nil where it is not.
  private func rtsp(_ name: String) -> String? {
    target.status().listeners.first { $0.scheme.hasPrefix("rtsp") }.map { "\($0.scheme)://HOST:\($0.port)/\(name)" }
  }

  /// What no browser keeps or takes for anything else. Pages of other sites may show pictures, but not read them.
  private static func headers(_ type: String) -> HTTPFields {
    [.contentType: type, .cacheControl: "no-store", .xContentTypeOptions: "nosniff"]
  }
}

/// A viewer's place among a camera's, which can be left: what is to be sent lives as long as its answer.
private final class ViewerPlace: Sendable {
  private let pictures: Mutex<(any PictureSequence)?>

  init(_ pictures: any PictureSequence) { self.pictures = Mutex(pictures) }

  private var current: (any PictureSequence)? { pictures.withLock { $0 } }

  func next(until deadline: MediaTime) async throws -> [UInt8] {
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
        "this description has the stream's key in it, and this connection is not encrypted: ask by --https, or on the "
          + "machine itself", kind: .noPermission))
  }
}
