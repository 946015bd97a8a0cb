package import Platform
import Synchronization

/// The work that each stage of a pipeline has received and done; numbers that only rise.
package struct PipelineProgress: Equatable, Sendable {
  /// Frames that came from the source.
  package var captured = 0
  /// Frames that the encode stage is done with: encoded, failed, or skipped because the stream has no viewer.
  package var encoded = 0
  /// Pictures that were queued for the network.
  package var queued = 0
  /// Pictures that the send stage is done with, including those that the network did not take.
  package var sent = 0

  /// Creates progress of zero.
  package init() {}
}

/// Detects a stage of a pipeline that stands still though it has work.
///
/// The source always has work: one that has lost its camera delivers another picture. The encode stage has work where a
/// frame has come, and the send stage where a picture is queued. So a stream without viewers, or one that the network
/// does not take, does not stand still.
package struct ProgressWatch: Sendable {
  /// A stage of the pipeline, in the order of the frames.
  package enum Stage: String, CaseIterable, Sendable {
    /// Frames from the camera.
    case capture
    /// From frames to coded pictures.
    case encode
    /// From coded pictures to packets.
    case send
  }

  /// The stage that stands still; where several do, the last of them, which the others wait for.
  package private(set) var stuck: Stage?

  private let limit: Duration
  private let captureLimit: Duration
  private var last = PipelineProgress()
  private var judged: Instant
  /// The times since which there is work that is not done; nil where there is none.
  private var since: (capture: Instant, encode: Instant?, send: Instant?)
  /// The number of frames that had come when the encode stage was last done with one.
  private var capturedAtEncode = 0

  /// Begins to watch.
  ///
  /// - Parameters:
  ///   - limit: the time that a stage may take for one frame or picture.
  ///   - frameInterval: the source's. A source that is slower than `limit` has three intervals for a frame.
  package init(limit: Duration, frameInterval: Duration, at now: Instant) {
    self.limit = limit
    captureLimit = max(limit, frameInterval * 3)
    judged = now
    since = (now, nil, nil)
  }

  /// Judges the figures at `now`. To be called at least four times in `limit`, so that a longer pause is one of the
  /// whole program.
  package mutating func judge(_ progress: PipelineProgress, at now: Instant) {
    forgive(now - judged)
    judged = now
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

  /// Excuses a long pause between calls: the whole program was stopped, or the host was, and no stage could do
  /// anything.
  private mutating func forgive(_ pause: Duration) {
    guard pause * 2 > limit else { return }  // Twice the longest interval between calls.
    since.capture = since.capture + pause
    since.encode = since.encode.map { $0 + pause }
    since.send = since.send.map { $0 + pause }
  }
}

extension Pipeline {
  /// The work that the stages have done so far. Any thread may read it.
  package var progress: PipelineProgress {
    var progress = PipelineProgress()
    // From the last stage to the first, so that no stage seems to have done what had not come.
    progress.sent = statisticsRecorder.send.withLock { $0.pictures }
    progress.queued = tracks[0].pictures.committedCount
    progress.encoded = statisticsRecorder.encode.withLock { $0.handled }
    progress.captured = statisticsRecorder.capture.withLock { $0.frames }
    return progress
  }
}
