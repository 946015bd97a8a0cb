package import Platform
package import Streaming

/// A camera that delivers JPEG pictures.
///
/// Called as ``ControlTarget`` is.
package protocol PictureTarget: Sendable {
  /// Starts to make JPEG pictures for one viewer. They end when the returned object is released.
  ///
  /// - Parameters:
  ///   - peer: the viewer's connection, and the user that has logged in.
  ///   - isSnapshot: `true` for a single picture.
  /// - Throws: a `Failure`, whose line and kind the client gets.
  func look(_ peer: ViewerPeer, isSnapshot: Bool) throws -> any LiveSequence<ServedPicture>

  /// The origin that the next picture would have; makes no picture.
  var pictureOrigin: ServedPicture.Origin { get }

  /// Notes a single picture that was sent to `peer`. Returns `true` if `peer` is a new viewer.
  func noteSnapshot(_ peer: ViewerPeer, bytes: Int) -> Bool

  /// Returns the session description for the receivers at a destination (SDP), with the current parameter sets; nil if
  /// there is no such destination.
  ///
  /// - Parameter number: the destination's number, from 1, in the order given; nil is the first that gets H.264 or HEVC.
  func sessionDescription(ofDestination number: Int?) -> DescribedDestination?
}

/// The pictures or the sound of a camera from now on, for one viewer.
package protocol LiveSequence<Part>: AnyObject, Sendable {
  /// A picture, or MP3 frames.
  associatedtype Part: Sendable

  /// Returns the newest picture, a complete JPEG, and skips older ones. For sound, returns the MP3 frames since the last
  /// call; a listener that calls too late loses the oldest frames. Waits if there is nothing new.
  ///
  /// - Throws: a `Failure`, whose line and kind the client gets; its kind is `temporary` if nothing came in time and the
  ///   next part may.
  func next(until deadline: Instant) async throws -> Part

  /// Notes that `units` pictures or MP3 frames of so many bytes have been sent.
  func noteSent(_ units: Int, bytes: Int)
}

extension LiveViewer: LiveSequence {}

/// A JPEG picture for a client.
package struct ServedPicture: Sendable {
  /// The content of a picture, compared with what the camera sees now. The raw value is that of the header
  /// `Nightjar-Picture`.
  package enum Origin: String, CaseIterable, Sendable {
    /// The camera's own picture.
    case live
    /// The camera's own picture, which has stayed the same for a while, bit for bit.
    case frozen
    /// The picture that replaces a camera that is away or fails.
    case placeholder
    /// The synthetic camera's picture, because no camera was found at the start.
    case substitute
  }

  /// A complete JPEG.
  package var bytes: [UInt8]
  /// The content of the picture.
  package var origin: Origin

  /// Creates a picture from a complete JPEG and its origin.
  package init(_ bytes: [UInt8], _ origin: Origin = .live) {
    (self.bytes, self.origin) = (bytes, origin)
  }
}

/// The session description of a destination.
package struct DescribedDestination: Hashable, Sendable {
  /// The session description.
  package var text: String
  /// `true` if the description contains a key.
  package var hasKey: Bool

  /// Creates a destination's description.
  package init(text: String, hasKey: Bool) {
    (self.text, self.hasKey) = (text, hasKey)
  }
}
