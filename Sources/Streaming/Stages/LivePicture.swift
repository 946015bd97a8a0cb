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

/// The reason why there is no picture.
package enum PictureError: Failure, Hashable {
  /// There are as many viewers as are allowed.
  case tooMany(limit: Int)
  /// No picture came in time.
  case noPicture
  /// The stream has ended, or the viewer.
  case ended

  /// One line for the person at the terminal.
  package var description: String {
    switch self {
    case .tooMany(let limit):
      "\(limit) viewers watch this camera's JPEG pictures already: try again later, or watch by RTSP"
    case .noPicture: "the camera delivered no picture in time: nightjar ctl status shows its state"
    case .ended: "the camera's stream has ended: try again"
    }
  }

  /// The kind of the failure.
  package var kind: FailureKind {
    switch self {
    case .tooMany, .noPicture: .temporary
    case .ended: .unavailable
    }
  }
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
  package var viewers: [PictureViewerStatistics] = []

  /// Creates statistics of zero.
  package init() {}
}

/// One viewer of JPEG pictures.
package struct PictureViewerStatistics: Hashable, Sendable {
  /// The viewer's number, unlike that of the pipeline's other viewers of pictures.
  package let id: UInt64
  /// The viewer's name, for a person.
  package let name: String
  /// The viewer's connection; nil where it is unknown.
  package let peer: ViewerPeer?
  /// `true` if the viewer wants one picture alone.
  package let isSnapshot: Bool
  /// Pictures that were sent to the viewer.
  package var pictures = 0
  /// Their bytes.
  package var bytes = 0
}

/// A viewer of a pipeline's pictures, for the life of the object.
package final class PictureViewer: Sendable {
  private let stage: PictureStage
  private let id: UInt64
  private let since: Instant
  private let onLeave: @Sendable () -> Void

  fileprivate init(
    _ stage: PictureStage, _ name: String, peer: ViewerPeer?, isSnapshot: Bool, demands: Bool,
    onLeave: @escaping @Sendable () -> Void
  ) throws {
    (self.stage, self.onLeave) = (stage, onLeave)
    // Before it is admitted: a camera's own pictures are kept from then on.
    id = try stage.admit(name, peer: peer, isSnapshot: isSnapshot, demands: demands)
    since = .now()
  }

  deinit {
    stage.dismiss(id)
    onLeave()
  }

  /// Returns the next picture: one that was taken after the viewer came, and that it has not got yet. Pictures that are
  /// not requested in time are not kept. One call at a time.
  ///
  /// - Throws: ``PictureError``, `ConversionError`; ``PictureError/ended`` too where the task is cancelled.
  package func next(until deadline: Instant) async throws -> LivePicture {
    try await stage.next(for: id, since: since, until: deadline)
  }

  /// Notes that the viewer has got a picture of so many bytes.
  package func noteSent(_ bytes: Int) { stage.noteSent(bytes, to: id) }
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
  /// - Throws: ``PictureError``, `SystemFailure` where the system has no thread left.
  package func look(
    _ name: String, peer: ViewerPeer? = nil, isSnapshot: Bool = false, demands: Bool = true,
    onLeave: @escaping @Sendable () -> Void = {}
  ) throws -> PictureViewer {
    try PictureViewer(
      pictureStage, name, peer: peer, isSnapshot: isSnapshot, demands: demands, onLeave: onLeave)
  }

  /// The statistics of JPEG pictures so far, with their present viewers.
  package var pictureStatistics: PictureStatistics { pictureStage.statistics }
}
