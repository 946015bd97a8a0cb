package import Alerts
package import Media
package import Platform

/// A program that streams one camera or several, as the control API uses it.
///
/// Called on threads of Swift concurrency, several at a time; no call may block for a frame.
package protocol ControlTarget: ObservedTarget {
  /// The names of the current cameras, in the order of their configuration.
  var cameras: [String] { get }

  /// Returns the camera of this name; nil if no such camera exists now.
  func camera(_ name: String) -> (any CameraTarget)?

  /// The signal that the cameras have changed, or that one streams again.
  var changes: ChangeSignal { get }

  /// Returns the current state of the program and its cameras.
  func status() -> ApplianceStatus

  /// The last events.
  var alerts: AlertHistory { get }

  /// The phones that may watch; nil if no page is served.
  var phones: Phones? { get }

  /// The browsers that are told of alerts while their page is closed; nil if none is.
  var push: PushSubscriptions? { get }

  /// The certificate of the host's own authority in DER; nil if there is none.
  var authority: [UInt8]? { get }

  /// The address of the page for other devices, as in `https://192.0.2.7:8443`; nil if they cannot reach it.
  var pageURL: String? { get }

  /// Reads the configuration again, applies it, and then returns. If an error is thrown, nothing has changed.
  ///
  /// - Throws: a `Failure`, whose line and kind the client gets.
  func reload() async throws -> ReloadAnswer
}

/// One camera's stream, as the control API uses it.
///
/// Called as ``ControlTarget`` is. The stream may have ended meanwhile; then its functions report that, or do nothing.
package protocol CameraTarget: PictureTarget, MP3Target, PeerTarget, ControlledCamera, SoundTarget {
  /// Returns the current state of the stream.
  func status() -> StreamStatus

  /// Returns the current viewers of the stream: the destinations in the order given, then the guests.
  func viewers() -> [StreamViewer]

  /// Rotates the pictures to `orientation` from the next frame on. May wait for that frame, without blocking its
  /// thread.
  ///
  /// - Throws: a `Failure`, whose line and kind the client gets.
  func rotate(to orientation: Orientation) async throws

  /// Makes one of the next frames a key frame (IDR).
  func requestKeyFrame()

  /// Sets the bitrate from the next frame on.
  ///
  /// - Throws: a `Failure`, whose line and kind the client gets.
  func changeBitrate(_ bitsPerSecond: Int) throws

  /// Sends the stream to one more destination, and returns the session description for its receivers (SDP). May wait for a
  /// name server.
  ///
  /// - Throws: a `Failure`, whose line and kind the client gets.
  func addDestination(_ url: String) async throws -> String

  /// Ends the stream to a destination.
  ///
  /// - Throws: a `Failure`, whose line and kind the client gets.
  func removeDestination(_ url: String) throws
}
