/// The renditions beside the stream's own pictures.
extension StreamStatus {
  /// The small rendition of the pictures, for viewers whose networks take less than the least bitrate of the full ones.
  package struct SmallRendition: Codable, Hashable, Sendable {
    /// The width in pixels of pictures that are not rotated.
    package var width: Int
    /// The height in pixels of pictures that are not rotated.
    package var height: Int
    /// `true` while there is an encoder, because some viewer needs it.
    package var running: Bool
    /// The encoder's name, for the user; empty before the first one.
    package var encoder: String
    /// Switches from hardware to its fallback.
    package var failovers: Int
    /// The number of encoded pictures.
    package var encoded: Int
    /// Frames that did not become small pictures, because the encoder was late or failed.
    package var dropped: Int
    /// The number of times that a viewer waited in vain for a small key frame, and went on with full pictures.
    package var missed: Int
    /// The number of times that an encoder could not be opened, or failed for good.
    package var failures: Int
    /// The reason why a needed encoder does not exist; nil if no encoder is missing.
    package var failure: String?

    /// Creates a rendition's state.
    package init(
      width: Int, height: Int, running: Bool, encoder: String, failovers: Int = 0, encoded: Int, dropped: Int,
      missed: Int, failures: Int = 0, failure: String?
    ) {
      (self.width, self.height, self.running, self.encoder) = (width, height, running, encoder)
      (self.encoded, self.dropped, self.missed, self.failure) = (encoded, dropped, missed, failure)
      (self.failovers, self.failures) = (failovers, failures)
    }
  }

  /// The H.264 rendition of a camera whose codec is HEVC, for viewers that cannot decode HEVC.
  package struct H264Rendition: Codable, Hashable, Sendable {
    /// The width in pixels of pictures that are not rotated.
    package var width: Int
    /// The height in pixels of pictures that are not rotated.
    package var height: Int
    /// `true` while there is an encoder, because some viewer needs it or has just left.
    package var running: Bool
    /// The encoder's name, for the user; empty before the first one.
    package var encoder: String
    /// The number of encoded pictures.
    package var encoded: Int
    /// Pictures that the network accepted for at least one viewer. ``Frames/sent`` excludes them.
    package var sent: Int
    /// Frames that were not encoded in H.264, because the encoder was late or failed.
    package var dropped: Int
    /// The reason why a needed encoder does not exist; nil if no encoder is missing.
    package var failure: String?

    /// Creates a rendition's state.
    package init(
      width: Int, height: Int, running: Bool, encoder: String, encoded: Int, sent: Int, dropped: Int, failure: String?
    ) {
      (self.width, self.height, self.running, self.encoder) = (width, height, running, encoder)
      (self.encoded, self.sent, self.dropped, self.failure) = (encoded, sent, dropped, failure)
    }
  }
}
