package import Platform
package import Streaming

/// A camera that delivers its sound as MP3.
///
/// Called on threads of Swift concurrency, several at a time, as ``ControlTarget`` is.
package protocol MP3Target: Sendable {
  /// Starts to encode the sound as MP3 for one listener, as long as the returned object is held.
  ///
  /// - Parameter peer: the listener's connection, and the user that has logged in.
  /// - Throws: a `Failure`, whose line and kind the client gets; its kind is `noInput` for a stream without sound.
  func listen(_ peer: ViewerPeer) throws -> any MP3Sequence
}

/// The sound of a camera from now on, for one listener.
package protocol MP3Sequence: AnyObject, Sendable {
  /// Returns the MP3 frames since the last call; waits for one where there is none. A listener that asks too late loses
  /// the oldest ones.
  ///
  /// - Throws: a `Failure`, whose line and kind the client gets; its kind is `temporary` if no sound came in time and
  ///   the next may.
  func next(until deadline: Instant) async throws -> MP3Frames

  /// Notes that this part has been sent.
  func noteSent(_ sound: MP3Frames)
}
