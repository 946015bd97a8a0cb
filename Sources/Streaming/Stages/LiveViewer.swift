package import Platform

/// The reason why a viewer by HTTP gets no JPEG pictures, or no MP3.
package enum LiveViewerError: Failure, Hashable {
  /// There are as many viewers as are allowed.
  case tooMany(EndlessAnswer, limit: Int)
  /// No picture or no sound came in time.
  case late(EndlessAnswer)
  /// The stream has ended, or the viewer was removed.
  case ended

  /// One line for the person at the terminal.
  package var description: String {
    switch self {
    case .tooMany(.pictures, let limit):
      "\(limit) viewers watch this camera's JPEG pictures already: try again later, or watch by RTSP"
    case .tooMany(.sound, let limit):
      "\(limit) listeners have this camera's MP3 already: try again later, or listen by RTSP"
    case .late(.pictures): "the camera delivered no picture in time: nightjar ctl status shows its state"
    case .late(.sound): "no sound came in time: nightjar ctl status shows the state of the microphone"
    case .ended: "the camera's stream has ended: try again"
    }
  }

  /// The kind of the failure.
  package var kind: FailureKind {
    switch self {
    case .tooMany, .late: .temporary
    case .ended: .unavailable
    }
  }
}

/// An answer of HTTP that lasts until its client leaves.
package enum EndlessAnswer: String, Sendable {
  /// JPEG pictures, `/stream.mjpg`.
  case pictures = "mjpeg"
  /// MP3 frames, `/listen.mp3`.
  case sound = "mp3"
}

/// The statistics of one viewer by HTTP.
package struct LiveViewerStatistics: Hashable, Sendable {
  /// The viewer's number, unique among the pipeline's viewers of the same kind.
  package let id: UInt64
  /// The viewer's name, for a person.
  package let name: String
  /// The viewer's connection; nil where it is unknown.
  package let peer: ViewerPeer?
  /// `true` if the viewer wants one picture alone.
  package var isSnapshot = false
  /// Pictures, or MP3 frames, that were sent to the viewer.
  package var units = 0
  /// Their bytes.
  package var bytes = 0
  /// MP3 frames that the viewer lost because it took them too slowly.
  package var lost = 0

  mutating func noteSent(_ units: Int, bytes: Int) {
    self.units += units
    self.bytes += bytes
  }
}

/// A stage whose output viewers by HTTP share.
protocol LiveStage: AnyObject, Sendable {
  /// Notes `units` pictures or MP3 frames that were sent to a viewer.
  func noteSent(_ units: Int, bytes: Int, to viewer: UInt64)
  /// Removes a viewer.
  func dismiss(_ viewer: UInt64)
}

/// A viewer by HTTP of a pipeline's pictures or sound, for the life of the object.
package final class LiveViewer<Part: Sendable>: Sendable {
  private let stage: any LiveStage
  private let id: UInt64
  private let onLeave: @Sendable () -> Void
  private let takeNext: @Sendable (_ deadline: Instant) async throws -> Part

  /// Creates the viewer that `stage` has admitted as `id`.
  init(
    _ stage: any LiveStage, _ id: UInt64, onLeave: @escaping @Sendable () -> Void,
    next: @escaping @Sendable (_ deadline: Instant) async throws -> Part
  ) {
    (self.stage, self.id, self.onLeave, takeNext) = (stage, id, onLeave, next)
  }

  deinit {
    stage.dismiss(id)
    onLeave()
  }

  /// Returns the next part. One call at a time. For a viewer of pictures it is a picture that was taken after the viewer
  /// came; pictures that are not requested in time are not kept. For a listener it is all MP3 frames since the last
  /// call; a listener that calls less than once a second loses the oldest frames.
  ///
  /// - Throws: ``LiveViewerError``, `ConversionError`, `MP3Failure`; ``LiveViewerError/ended`` too where the task is
  ///   cancelled.
  package func next(until deadline: Instant) async throws -> Part { try await takeNext(deadline) }

  /// Notes that the viewer has got `units` pictures or MP3 frames of so many bytes.
  package func noteSent(_ units: Int, bytes: Int) { stage.noteSent(units, bytes: bytes, to: id) }
}
