package import Media
package import Platform

/// A rendition whose encoder runs on a ``RenditionThread``. That thread alone calls the functions, one after the other.
package protocol ThreadedRendition: AnyObject, Sendable {
  /// The thread of the encoder.
  var thread: RenditionThread { get }
  /// Makes the encoder.
  var makeEncoder: Pipeline.MakeRenditionEncoder { get }

  /// Allocates what an encoder needs. Returns the encoder's configuration, and the queue for its pictures.
  ///
  /// - Parameter isAnew: `true` if the encoder follows another one that has not failed.
  func prepare(isAnew: Bool) throws -> (EncoderConfiguration, CodedPictureQueue)

  /// Returns `true` if the frame is to become a key frame. Each frame is asked for once, before it is encoded.
  func isKeyFrame(_ waiting: borrowing RenditionFrame, frameInterval: Duration) -> Bool

  /// Returns `true` if the encoder is to be made anew. Called after each frame.
  func isOutdated(at now: Instant) -> Bool
}

extension ThreadedRendition {
  /// The failures of the encoder, and their ends, for the terminal.
  var events: EventQueue<RenditionEvent> { thread.events }
}

/// A copy of a frame on its way to the encoder of a rendition.
package struct RenditionFrame: ~Copyable {
  let frame: Frame
  let isKeyFrame: Bool
}
