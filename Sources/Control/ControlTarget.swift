public import Media

/// What is controlled: a program that streams one camera or several.
///
/// Called on threads of Swift concurrency, several at a time; none of these may block for a frame.
public protocol ControlTarget: ObservedTarget {
  /// The cameras' names of now, in the order of their configuration.
  var cameras: [String] { get }

  /// The camera of this name; nil where there is none, or none any more.
  func camera(_ name: String) -> (any CameraTarget)?

  /// How all of it is now.
  func status() -> BoxStatus

  /// Reads the configuration again and does what it says now. Answers once that is done; where it throws, nothing has
  /// changed.
  ///
  /// - Throws: a `Failure`, whose line and kind the client gets.
  func reload() async throws -> ReloadAnswer
}

/// One camera's stream, as it is controlled.
///
/// Called as ``ControlTarget`` is. It may be one that has ended meanwhile; then it says so, or does nothing.
public protocol CameraTarget: PictureTarget, ControlledCamera {
  /// How it is now.
  func status() -> StreamStatus

  /// Who gets the stream now: the destinations in the order given, then the guests.
  func viewers() -> [StreamViewer]

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
