public import Media

/// What is controlled: a stream that runs.
///
/// Called on threads of Swift concurrency, several at a time; none of these may block for a frame.
public protocol ControlTarget: Sendable {
  /// How it is now.
  func status() -> StreamStatus

  /// From the next frame on, lays pictures so. May wait for that frame, without holding up its thread.
  ///
  /// - Throws: a `Failure`, whose line and kind the client gets.
  func rotate(to orientation: Orientation) async throws

  /// Makes one of the next frames a key frame (IDR).
  func requestKeyFrame()

  /// From the next frame on, encodes at so many bits a second.
  ///
  /// - Throws: a `Failure`, whose line and kind the client gets.
  func changeBitrate(_ bitsPerSecond: Int) throws

  /// Sends the stream to one more destination; what its receivers must know (SDP). May look a name up.
  ///
  /// - Throws: a `Failure`, whose line and kind the client gets.
  func addDestination(_ url: String) async throws -> String

  /// Ends the stream to a destination.
  ///
  /// - Throws: a `Failure`, whose line and kind the client gets.
  func removeDestination(_ url: String) throws
}
