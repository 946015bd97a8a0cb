package import Platform

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

/// The reason why there is no MP3.
package enum MP3Error: Failure, Hashable {
  /// There are as many listeners as are allowed.
  case tooMany(limit: Int)
  /// No sound came in time.
  case late
  /// The stream has ended, or the listener was removed.
  case ended

  /// One line for the person at the terminal.
  package var description: String {
    switch self {
    case .tooMany(let limit):
      "\(limit) listeners have this camera's MP3 already: try again later, or listen by RTSP"
    case .late: "no sound came in time: nightjar ctl status shows the state of the microphone"
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

/// The statistics of MP3 for listeners.
package struct MP3Statistics: Hashable, Sendable {
  /// MP3 frames of 24 ms that were encoded, once for all listeners.
  package var encoded = 0
  /// Frames of 20 ms of the microphone that were not encoded although somebody listened, because the encoder was late.
  package var skipped = 0
  /// The present listeners, in the order in which they came.
  package var listeners: [MP3ListenerStatistics] = []

  /// Creates statistics of zero.
  package init() {}
}

/// One listener of MP3.
package struct MP3ListenerStatistics: Hashable, Sendable {
  /// The listener's number, unique in the pipeline.
  package let id: UInt64
  /// The listener's name, for a person.
  package let name: String
  /// The listener's connection; nil where it is unknown.
  package let peer: ViewerPeer?
  /// MP3 frames that were sent to the listener.
  package var frames = 0
  /// Their bytes.
  package var bytes = 0
  /// MP3 frames that the listener lost because it took them too slowly.
  package var lost = 0
}

/// A listener of a pipeline's MP3, for the life of the object.
package final class MP3Listener: Sendable {
  private let stage: MP3Stage
  private let id: UInt64
  private let onLeave: @Sendable () -> Void

  fileprivate init(
    _ stage: MP3Stage, _ name: String, peer: ViewerPeer?, onLeave: @escaping @Sendable () -> Void
  ) throws {
    (self.stage, self.onLeave) = (stage, onLeave)
    id = try stage.admit(name, peer: peer)
  }

  deinit {
    stage.dismiss(id)
    onLeave()
  }

  /// Returns the MP3 frames since the last call; waits for one where there is none. A listener that calls less than
  /// once a second loses the oldest frames. One call at a time.
  ///
  /// - Throws: ``MP3Error``, `MP3Failure`; ``MP3Error/ended`` too where the task is cancelled.
  package func next(until deadline: Instant) async throws -> MP3Frames {
    try await stage.next(for: id, until: deadline)
  }

  /// Notes that the listener has got this part.
  package func noteSent(_ sound: MP3Frames) { stage.noteSent(sound, to: id) }
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
  /// - Throws: ``MP3Error``, `SystemFailure` where the system has no thread left.
  package func listen(
    _ name: String, peer: ViewerPeer? = nil, onLeave: @escaping @Sendable () -> Void = {}
  ) throws -> MP3Listener? {
    try sound.map { try MP3Listener($0.mp3, name, peer: peer, onLeave: onLeave) }
  }
}
