import CTracing
package import Media
package import Platform

/// A camera whose frames a thread marks: its number and name in this program, and the file that its frames are traced
/// to.
///
/// The marks themselves are the functions of `CTracing`, which any code on such a thread calls. They know from the
/// thread which camera they belong to. Without a listener and without a file, they do nothing.
package struct CameraTrace: Sendable {
  /// The camera's number, unlike the others of this program; from 1.
  package let number: Int
  /// The camera's name, for a person.
  package let name: String
  private let recorder: TraceRecorder?

  /// Creates a camera whose frames are traced by `recorder`, or marked by the probes alone.
  package init(number: Int = 1, name: String = "camera", recorder: TraceRecorder? = nil) {
    self.number = number
    self.name = name
    self.recorder = recorder
  }

  /// Runs `body` as one of the threads that the camera's frames pass through.
  ///
  /// - Parameter thread: the thread's name.
  package func follow<R: ~Copyable, E: Error>(thread: String, _ body: () throws(E) -> R) throws(E) -> R {
    let lane = recorder?.open(camera: self, thread: thread)
    nightjar_trace_enter(UInt32(truncatingIfNeeded: number), lane?.ring)
    defer {
      nightjar_trace_leave()
      lane?.close()
    }
    return try body()
  }
}

/// A reason for which a frame was left out on purpose.
package enum SkipReason: UInt32, CaseIterable, Sendable {
  /// The frame rate is limited.
  case thinned
  /// The stream had no viewer, and the frame was not encoded.
  case unwatched
  /// The frame was encoded, and the stream had no viewer any more.
  case unsent

  /// The name in traces.
  package var name: String {
    switch self {
    case .thinned: "thinned"
    case .unwatched: "unwatched"
    case .unsent: "unsent"
    }
  }
}

/// Marks for frames that end in another way than by being sent, in the project's own terms.
package enum FrameMark {
  /// Marks frames as lost.
  ///
  /// - Parameter frame: the frame's timestamp; nil where the frames were lost before there was a frame.
  package static func dropped(_ frame: Instant?, _ cause: DropCause, count: Int = 1) {
    // The names are literals: nothing is copied.
    cause.name.withCString { name in
      nightjar_frame_dropped(frame?.nanoseconds ?? -1, UInt32(cause.rawValue), name, Int64(count))
    }
  }

  /// Marks a frame as left out on purpose.
  package static func skipped(_ frame: Instant, _ reason: SkipReason) {
    reason.name.withCString { nightjar_frame_skipped(frame.nanoseconds, reason.rawValue, $0) }
  }
}
