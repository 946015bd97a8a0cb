package import Streaming

/// A camera that delivers its sound as MP3.
///
/// Called on threads of Swift concurrency, several at a time, as ``ControlTarget`` is.
package protocol MP3Target: Sendable {
  /// Starts to encode the sound as MP3 for one listener, as long as the returned object is held.
  ///
  /// - Parameter peer: the listener's connection, and the user that has logged in.
  /// - Throws: a `Failure`, whose line and kind the client gets; its kind is `noInput` for a stream without sound.
  func listen(_ peer: ViewerPeer) throws -> any LiveSequence<MP3Frames>
}
