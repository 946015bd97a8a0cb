import CTracing
package import Media
package import Platform
import Synchronization

/// An NV12 frame that waits for the encoder.
package struct WaitingFrame: ~Copyable {
  /// The frame.
  var frame: Frame
  /// The time at which the wait began.
  let since: Instant

  /// Creates a frame that waits since `since`.
  package init(frame: consuming Frame, since: Instant) {
    self.frame = frame
    self.since = since
  }
}

/// Takes pictures from the source and puts the newest into the encoder's mailbox. Runs on its own thread.
struct CaptureStage<Source: VideoSource>: Sendable {
  let source: Source
  let mailbox: Mailbox<WaitingFrame>
  let statistics: StatisticsRecorder
  /// Limits the frame rate of a live source.
  let thinning: FrameThinning
  /// Looks for movement and darkness.
  let detection: PictureDetection

  /// Runs until the source ends, fails, or `interrupt` fires. The mailbox is closed at the end, and a frame in it is
  /// still encoded.
  func run(interrupt: borrowing Interrupt) throws {
    defer {
      source.stop()
      mailbox.close()
    }
    try source.start()
    let isLive = source.isLive
    var due: Instant?
    while !interrupt.hasFired() {
      switch try source.next(interrupt: interrupt) {
      case .frame(let frame):
        // The pictures after a coded one need it, so none is left out.
        let mayDrop = isLive && frame.coded == nil
        let passes = !mayDrop || thinning.passes(frame.timestamp, due: &due)
        handOver(frame, mayDrop: mayDrop, passes: passes)
      case .dropped(let cause, let count):
        statistics.drop(cause, count: count)
        if count > 0 { FrameMark.dropped(nil, cause, count: count) }
      case .idle: continue
      case .ended: return
      }
    }
  }

  private func handOver(_ frame: consuming Frame, mayDrop: Bool, passes: Bool) {
    let now = Instant.now()
    let (captured, arrived, timestamp) = (frame.captured, frame.arrived, frame.timestamp)
    nightjar_frame_waiting(
      timestamp.nanoseconds, captured.nanoseconds, (arrived ?? now).nanoseconds, now.nanoseconds)
    statistics.capture.withLock {
      $0.frames += 1
      $0.latency.record((arrived ?? now) - captured)
      if let arrived { $0.conversion.record(now - arrived) }
    }
    detection.note(frame)
    guard passes else {
      FrameMark.skipped(timestamp, .thinned)
      return statistics.capture.withLock { $0.thinned += 1 }
    }
    let waiting = WaitingFrame(frame: frame, since: now)
    // The end of a displaced frame gives its memory back to the pool or to the camera, outside any lock.
    if let displaced = mayDrop ? mailbox.put(waiting) : mailbox.putWaiting(waiting) {
      FrameMark.dropped(displaced.frame.timestamp, .encoderLate)
      statistics.drop(.encoderLate)
    }
  }
}

/// Limits the number of frames a second, and keeps them as even as they come. The limit may change from any thread.
package final class FrameThinning: Sendable {
  /// The shortest interval in nanoseconds; 0 for none.
  private let interval = Atomic<Int64>(0)

  /// Creates a limit that passes every frame.
  package init() {}

  /// Allows `rate` frames a second; nil for all.
  package func limit(to rate: Double?) {
    interval.store(rate.map { Int64(1e9 / $0) } ?? 0, ordering: .relaxed)
  }

  /// Returns `true` if a frame of `timestamp` may pass. `due` belongs to the caller: the time at which the next frame
  /// is due.
  package func passes(_ timestamp: Instant, due: inout Instant?) -> Bool {
    let interval = Duration(nanoseconds: self.interval.load(ordering: .relaxed))
    guard interval > .zero else {
      due = nil
      return true
    }
    guard let next = due, next - timestamp < interval * 2, timestamp - next < interval * 2 else {
      // The first frame, or the first after a pause.
      due = timestamp + interval
      return true
    }
    // A camera's clock jitters: a frame that is a little early is the one that is due.
    guard timestamp + Duration(nanoseconds: interval.nanoseconds / 8) >= next else { return false }
    due = next + interval
    return true
  }
}
