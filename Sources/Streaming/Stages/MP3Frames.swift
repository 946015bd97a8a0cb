/// A part of the stream's sound as MP3, for one listener.
package struct MP3Frames: Sendable {
  /// Whole MP3 frames of 24 ms, oldest first.
  package let bytes: [UInt8]
  /// The number of frames.
  package let frames: Int

  /// Creates a part of `frames` whole frames.
  package init(bytes: [UInt8], frames: Int) {
    (self.bytes, self.frames) = (bytes, frames)
  }
}

/// The statistics of MP3 for listeners.
package struct MP3Statistics: Hashable, Sendable {
  /// MP3 frames of 24 ms that were encoded, once for all listeners.
  package var encoded = 0
  /// Frames of 20 ms of the microphone that were not encoded although somebody listened, because the encoder was late.
  package var skipped = 0
  /// The present listeners, in the order in which they came.
  package var listeners: [LiveViewerStatistics] = []

  /// Creates statistics of zero.
  package init() {}
}

extension Pipeline {
  /// Begins to encode the sound as MP3 for a listener: after gain, and silence while it is muted. One encoding serves
  /// all listeners; RTP viewers are not needed.
  ///
  /// - Parameters:
  ///   - name: the listener's name, for a person.
  ///   - peer: the listener's connection.
  ///   - onLeave: is called once the listener has left its place to others, by the thread that released it.
  /// - Returns: nil for a stream without sound.
  /// - Throws: ``LiveViewerError``, `SystemFailure` where the system has no thread left.
  package func listen(
    _ name: String, peer: ViewerPeer? = nil, onLeave: @escaping @Sendable () -> Void = {}
  ) throws -> LiveViewer<MP3Frames>? {
    guard let stage = sound?.mp3 else { return nil }
    let id = try stage.admit(name, peer: peer)
    return LiveViewer(stage, id, onLeave: onLeave) { try await stage.next(for: id, until: $0) }
  }
}
