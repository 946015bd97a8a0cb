package import Platform

/// A picture of the stream as JPEG, for a viewer that requested one.
package struct LivePicture: Sendable {
  /// A whole JPEG.
  package let bytes: [UInt8]
  /// The time at which its frame became available, on `CLOCK_MONOTONIC`.
  package let captured: Instant
  /// `true` if it takes the place of a picture that the camera does not deliver.
  package let isPlaceholder: Bool
}

/// The statistics of pictures for viewers of JPEG.
package struct PictureStatistics: Hashable, Sendable {
  /// JPEGs that were made.
  package var coded = 0
  /// JPEGs of the camera's own that were handed on as they are.
  package var passed = 0
  /// Frames that were not taken although a viewer waited, because the picture before was not ready.
  package var skipped = 0
  /// The present viewers, in the order in which they came.
  package var viewers: [LiveViewerStatistics] = []
  /// The number of present viewers of streams of pictures, without those that wait for a single one.
  package var watching: Int { viewers.count { !$0.isSnapshot } }

  /// Creates statistics of zero.
  package init() {}
}

extension Pipeline {
  /// Begins to make JPEG pictures for a viewer: rotated and scaled like the stream, with placeholders too. They are
  /// made with or without viewers by RTP, and only as many as are requested.
  ///
  /// - Parameters:
  ///   - name: the viewer's name, for a person.
  ///   - peer: the viewer's connection.
  ///   - isSnapshot: `true` if the viewer wants one picture alone.
  ///   - demands: `false` takes pictures from samples alone: a camera keeps no pictures of its own for the viewer, and
  ///     H.264 of a camera passes on, without pictures.
  ///   - onLeave: is called once the viewer has left its place to others, by the thread that released it.
  /// - Throws: ``LiveViewerError``, `SystemFailure` where the system has no thread left.
  package func look(
    _ name: String, peer: ViewerPeer? = nil, isSnapshot: Bool = false, demands: Bool = true,
    onLeave: @escaping @Sendable () -> Void = {}
  ) throws -> LiveViewer<LivePicture> {
    let stage = pictureStage
    // Before the time is taken: a camera's own pictures are kept from then on.
    let id = try stage.admit(name, peer: peer, isSnapshot: isSnapshot, demands: demands)
    let since = Instant.now()
    return LiveViewer(stage, id, onLeave: onLeave) { try await stage.next(for: id, since: since, until: $0) }
  }

  /// The statistics of JPEG pictures so far, with their present viewers.
  package var pictureStatistics: PictureStatistics { pictureStage.statistics }
}
