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

  /// The longest wait for a frame, shorter than the server's idle limit.
  private static let patience = Duration(seconds: 5)
  /// The most unsent bytes of a listener, in the kernel and again in this program: half a second of one channel. What
  /// waits there delays all later sound, because a player never catches up.
  private static let unsentBytes = 4 << 10
  /// The pause after a failure, in nanoseconds.
  private static let retryPause: UInt64 = 200_000_000
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
    let place = ViewerPlace<any MP3Sequence>(try heard.listen(context.peer))
    if let refusal = context.admitStream() { throw refusal }
    let name = target.cameras.count > 1 ? heard.status().name : nil
    let body = ResponseBody { writer in
      let began = Instant.now()
      var sent = 0
      await context.keepUnsent(Self.unsentBytes)
      context.events?.add(.came(viewer: context.peer, .sound, camera: name))
      defer {
        place.leave()
        context.events?.add(.left(viewer: context.peer, .sound, camera: name, after: .now() - began, units: sent))
      }
      while context.isStillAllowed(.view) {
        let sound: MP3Frames
        do {
          guard let current = place.current else { throw CancellationError() }
          sound = try await current.next(until: .now() + Self.patience)
        } catch let error as any Failure where error.kind == .temporary {
          continue
        } catch {
          // Another pipeline may follow, as after a reload. The former place is released first.
          place.leave()
          try Task.checkCancellation()
          let next = await target.again(for: Self.patience) { try camera(context).listen(context.peer) }
          guard let next else { break }
          place.take(next)
          // A pipeline whose sound fails at once is not asked in a loop.
          try await Task.sleep(nanoseconds: Self.retryPause)
          continue
        }
        // Returns once the client has taken what was written before, but for the bytes above.
        try await writer.write(ByteBuffer(bytes: sound.bytes))
        place.current?.noteSent(sound)
        sent += sound.frames
      }
      try await writer.finish(nil)
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
