import CTracing
public import Media

/// Whose frames a thread marks as they go by: a camera of this program, by number and name, and the file that its frames are
/// traced to.
///
/// The marks themselves are the functions of `CTracing`, which any code on such a thread calls; they know by the thread what
/// they belong to. Nobody who listens, and no file, means that they do nothing.
public struct CameraTrace: Sendable {
  /// Tells the camera from the others of this program; from 1.
  public let number: Int
  /// What people call it.
  public let name: String
  private let recorder: TraceRecorder?

  /// A camera whose frames are traced by `recorder`, or marked by the probes alone.
  public init(number: Int = 1, name: String = "camera", recorder: TraceRecorder? = nil) {
    self.number = number
    self.name = name
    self.recorder = recorder
  }

  /// Runs `body` as one of the threads that the camera's frames pass through.
  ///
  /// - Parameter thread: the thread's name.
  public func follow<R: ~Copyable, E: Error>(thread: String, _ body: () throws(E) -> R) throws(E) -> R {
    let lane = recorder?.open(camera: self, thread: thread)
    nightjar_trace_enter(UInt32(truncatingIfNeeded: number), lane?.ring)
    defer {
      nightjar_trace_leave()
      lane?.close()
    }
    return try body()
  }
}

/// Why a frame was left out on purpose.
public enum SkipReason: UInt32, CaseIterable, Sendable {
  /// Fewer frames a second are to be encoded.
  case thinned
  /// Nobody watched, and it was not encoded.
  case unwatched
  /// It was encoded, and nobody watched any more.
  case unsent

  /// The name in traces.
  public var name: String {
    switch self {
    case .thinned: "thinned"
    case .unwatched: "unwatched"
    case .unsent: "unsent"
    }
  }
}

/// Marks of frames that end otherwise than by being sent, in words of ours.
public enum FrameMark {
  /// Frames were lost.
  ///
  /// - Parameter frame: Which one; nil where they were lost before there was a frame.
  public static func dropped(_ frame: MediaTime?, _ cause: DropCause, count: Int = 1) {
    // The names are literals: nothing is copied.
    cause.name.withCString { name in
      nightjar_frame_dropped(frame?.nanoseconds ?? -1, UInt32(cause.rawValue), name, Int64(count))
    }
  }

  /// A frame was left out on purpose.
  public static func skipped(_ frame: MediaTime, _ reason: SkipReason) {
    reason.name.withCString { nightjar_frame_skipped(frame.nanoseconds, reason.rawValue, $0) }
  }
}
