import Hummingbird
import NIOCore
import Platform
import Streaming

/// An endless answer with a camera's live pictures or sound, until the client leaves.
struct LiveAnswer: Sendable {
  /// The longest wait for a picture or for sound, shorter than the server's idle limit.
  static let patience = Duration(seconds: 5)
  /// The pause after a failure.
  private static let retryPause = Duration(seconds: 0.2)

  let kind: EndlessAnswer
  let context: ControlContext
  let target: any ControlTarget
  /// The camera's name, for the log, if there are several.
  let camera: String?
  /// The minimum time from one part to the next.
  var interval = Duration.zero

  /// Returns the body.
  ///
  /// - Parameters:
  ///   - join: takes a place at the camera. Another pipeline may follow, as after a reload: it is called again then.
  ///   - begin: writes what stands before the first part.
  ///   - write: writes a part, and returns the number of its pictures or MP3 frames, and of their bytes.
  /// - Throws: what `join` throws, and `HTTPRefusal` if the client may have no further endless answer.
  func body<Part: Sendable>(
    join: @escaping @Sendable () throws -> any LiveSequence<Part>,
    begin: @escaping @Sendable (inout any ResponseBodyWriter) async throws -> Void,
    write: @escaping @Sendable (Part, inout any ResponseBodyWriter) async throws -> (units: Int, bytes: Int)
  ) throws -> ResponseBody {
    let place = ViewerPlace(try join())
    if let refusal = context.admitStream() { throw refusal }
    return ResponseBody { writer in
      let began = Instant.now()
      var sent = 0
      context.events?.add(.came(viewer: context.peer, kind, camera: camera))
      defer {
        place.leave()
        context.events?.add(.left(viewer: context.peer, kind, camera: camera, after: .now() - began, units: sent))
      }
      var due = Instant.zero
      try await begin(&writer)
      while context.isStillAllowed(.view) {
        try await Self.sleep(until: due)
        let part: Part
        do {
          guard let current = place.current else { throw CancellationError() }
          part = try await current.next(until: .now() + Self.patience)
        } catch let error as any Failure where error.kind == .temporary {
          continue
        } catch {
          // A viewer that waits for another pipeline longer than a connection may is gone. The former place is released
          // first: the viewer needs only one.
          place.leave()
          try Task.checkCancellation()
          guard let next = await target.again(for: Self.patience, join) else { break }
          place.take(next)
          // A pipeline that fails at once is not asked in a loop.
          due = max(due, .now() + Self.retryPause)
          continue
        }
        due = max(due + interval, .now())
        // Returns once the client has taken most of the part: until then no other is requested.
        let (units, bytes) = try await write(part, &writer)
        place.current?.noteSent(units, bytes: bytes)
        sent += units
      }
      try await writer.finish(nil)
    }
  }

  private static func sleep(until time: Instant) async throws {
    let rest = time - .now()
    if rest > .zero { try await Task.sleep(nanoseconds: UInt64(rest.nanoseconds)) }
  }
}
