import HTTPTypes
import Hummingbird
import NIOCore
import Platform
import Streaming

/// The route of a camera's live sound, for phones and browsers. It needs the role ``Role/view``.
///
/// | request | answer |
/// |---|---|
/// | `GET /listen.mp3` | `audio/mpeg`: MP3 frames, until the client leaves |
///
/// It exists behind `/cameras/{camera}` too.
struct MP3API: Sendable {
  let target: any ControlTarget
  let camera: @Sendable (ControlContext) throws(HTTPRefusal) -> any CameraTarget

  /// The methods that each path allows.
  static let routes: [String: [HTTPRequest.Method]] = [
    "/listen.mp3": [.get, .head], "/cameras/{camera}/listen.mp3": [.get, .head],
  ]

  /// The most unsent bytes of a listener, in the kernel and again in this program: half a second of one channel. What
  /// waits there delays all later sound, because a player never catches up.
  private static let unsentBytes = 4 << 10
  private static let type = "audio/mpeg"

  func add(to router: some RouterMethods<ControlContext>) {
    for group in [router.group(), router.group("cameras/:camera")] {
      group.add(.head, "listen.mp3", for: .view) { _, context in try head(context) }
      group.add(.get, "listen.mp3", for: .view) { _, context in try stream(context) }
    }
  }

  /// Returns the headers of the stream. A request for a range gets all of it with 200, which RFC 9110 section 14.2
  /// allows: AppleCoreMedia asks for two bytes first, and after this answer for the whole
  /// (github.com/karlheyes/icecast-kh/issues/441).
  private func headers(_ context: ControlContext) -> HTTPFields {
    var headers = HTTPFields.unstored(Self.type, context)
    headers[.acceptRanges] = "none"
    return headers
  }

  /// Checks that there is a camera with sound; encodes nothing.
  private func head(_ context: ControlContext) throws -> Response {
    let status = try camera(context).status()
    guard status.sound != nil else { throw HTTPRefusal.noSound(status.name) }
    var response = Response(status: .ok, headers: headers(context), body: ResponseBody())
    // The answer to GET has no length (RFC 9110 section 8.6).
    response.headers[.contentLength] = nil
    return response
  }

  private func stream(_ context: ControlContext) throws -> Response {
    let heard = try camera(context)
    let answer = LiveAnswer(
      kind: .sound, context: context, target: target, camera: target.cameras.count > 1 ? heard.status().name : nil)
    let body = try answer.body {
      try camera(context).listen(context.peer)
    } begin: { _ in
      await context.keepUnsent(Self.unsentBytes)
    } write: { sound, writer in
      // Returns once the client has taken what was written before, but for the bytes above.
      try await writer.write(ByteBuffer(bytes: sound.bytes))
      return (sound.frames, sound.bytes.count)
    }
    return Response(status: .ok, headers: headers(context), body: body)
  }
}

extension HTTPRefusal {
  fileprivate static func noSound(_ camera: String) -> HTTPRefusal {
    HTTPRefusal(status: .notFound, failure: .noSound(camera))
  }
}

extension ControlFailure {
  /// The refusal of the sound of a stream that has none.
  package static func noSound(_ camera: String) -> ControlFailure {
    ControlFailure(
      "camera \(camera) has no sound: nightjar devices lists microphones, and --audio takes one", kind: .noInput)
  }
}
