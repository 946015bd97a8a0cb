public import Media
import Synchronization

/// How much work each stage of a pipeline has had and has done; numbers that only rise.
public struct PipelineProgress: Equatable, Sendable {
  /// Frames that came from the source.
  public var captured = 0
  /// Frames that the encode stage is done with: encoded, failed, or let go by because nobody watches.
  public var encoded = 0
  /// Pictures that were queued for the network.
  public var queued = 0
  /// Pictures that the send stage is done with, whether the network took them or not.
  public var sent = 0

  /// Nothing yet.
  public init() {}
}

/// Tells which stage of a pipeline stands still though it has work.
///
/// The source always has: one that has lost its camera delivers another picture. The encode stage has where a frame has
/// come, and the send stage where a picture is queued. So a stream that nobody watches, or that the network does not take,
/// is none that stands still.
public struct ProgressWatch: Sendable {
  /// A stage of the pipeline, in the order of the frames.
  public enum Stage: String, CaseIterable, Sendable {
    /// Frames from the camera.
    case capture
    /// From frames to coded pictures.
    case encode
    /// From coded pictures to packets.
    case send
  }

  /// The stage that stands still; where several do, the last of them, which the others wait for.
  public private(set) var stuck: Stage?

  private let limit: MediaTime
  private let captureLimit: MediaTime
  private var last = PipelineProgress()
  private var looked: MediaTime
  /// When there was first something to do that is not done; nil where there is nothing.
  private var since: (capture: MediaTime, encode: MediaTime?, send: MediaTime?)
  /// How many frames had come when the encode stage was last done with one.
  private var capturedAtEncode = 0

  /// Begins to watch.
  ///
  /// - Parameters:
  ///   - limit: how long a stage may be with one thing.
  ///   - frameInterval: of the source; one that is slower than `limit` has three intervals for a frame.
  public init(limit: MediaTime, frameInterval: MediaTime, at now: MediaTime) {
    self.limit = limit
    captureLimit = max(limit, frameInterval * 3)
    looked = now
    since = (now, nil, nil)
  }

  /// Takes a look at the figures of `now`; at least four times in `limit`, so that a longer pause is one of the whole program.
  public mutating func look(_ progress: PipelineProgress, at now: MediaTime) {
    forgive(now - looked)
    looked = now
    if progress.captured != last.captured { since.capture = now }
    if progress.encoded != last.encoded {
      since.encode = nil
      capturedAtEncode = progress.captured
    }
    if since.encode == nil, progress.captured > capturedAtEncode { since.encode = now }
    if progress.sent != last.sent { since.send = nil }
    if since.send == nil, progress.queued > progress.sent { since.send = now }
    last = progress
    stuck =
      if let send = since.send, now - send >= limit {
        .send
      } else if let encode = since.encode, now - encode >= limit {
        .encode
      } else if now - since.capture >= captureLimit {
        .capture
      } else {
        nil
      }
  }

  /// Where nobody looked for long, the whole program was stopped, or the machine was: no stage could do anything.
  private mutating func forgive(_ pause: MediaTime) {
    guard pause * 2 > limit else { return }  // Twice the longest interval between looks.
    since.capture = since.capture + pause
    since.encode = since.encode.map { $0 + pause }
    since.send = since.send.map { $0 + pause }
  }
}

extension Pipeline {
  /// What its stages have done so far. Any thread may ask.
  public var progress: PipelineProgress {
    var progress = PipelineProgress()
    // From the end to the beginning, so that nothing seems to be done that had not come.
    progress.sent = statisticsRecorder.send.withLock { $0.pictures }
    progress.queued = pictures.committedCount
    progress.encoded = statisticsRecorder.encode.withLock { $0.handled }
    progress.captured = statisticsRecorder.capture.withLock { $0.frames }
    return progress
  }
}
