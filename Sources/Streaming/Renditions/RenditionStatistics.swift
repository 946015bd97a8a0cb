package import Media
package import Platform

/// The figures of a rendition beside the stream's own pictures: the small one, or that in H.264.
package struct RenditionStatistics: Sendable {
  /// The size of its pictures.
  package var size = PictureSize(width: 0, height: 0)
  /// `true` while there is an encoder.
  package var isRunning = false
  /// The number of times that an encoder was made.
  package var openings = 0
  /// The number of pictures that were encoded.
  package var frames = 0
  /// Their bytes, without start codes.
  package var bytes = 0
  /// The number of pictures of which the network took packets, for one viewer at least. Only of H.264, which has a track
  /// of its own: ``StreamStatistics/sent`` has the small pictures.
  package var sent = 0
  /// The number of frames that it lost: a newer one replaced them, or the encoder failed.
  package var dropped = 0
  /// The number of times that a viewer waited for a small key frame in vain, and went on with full pictures.
  package var missed = 0
  /// The time for which an encoder in software was at work.
  package var processing = Duration.zero
  /// The events within the encoders, as a fail-over from hardware.
  package var encoder = EncoderCounters()
  /// The number of times that an encoder could not be made, or failed for good.
  package var failures = 0
  /// The name of the encoder, for a person.
  package var encoderName = ""
  /// The reason why there is no encoder; nil where there is none.
  package var failure: String?

  /// Creates figures of zero.
  package init() {}
}
