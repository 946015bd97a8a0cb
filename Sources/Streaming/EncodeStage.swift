import Encoding
import Media
import Synchronization

/// Takes the newest frame, encodes it, and queues the coded picture for the network. Runs on its own thread.
struct EncodeStage<Encoder: VideoEncoder>: Sendable {
  let encoder: Encoder
  let keyFrameInterval: MediaTime
  let mailbox: Mailbox<WaitingFrame>
  let pictures: CodedPictureQueue
  let statistics: StatisticsRecorder
  /// Set by whoever needs a key frame; taken by the next frame.
  let keyFrameRequest: KeyFrameRequest

  /// How many frames in a row may fail before the pipeline gives up.
  static var failureLimit: Int { 30 }

  /// Runs until the mailbox is closed and empty.
  ///
  /// - Throws: ``EncoderError`` where ``failureLimit`` frames in a row could not be encoded.
  func run() throws(EncoderError) {
    defer {
      encoder.stop()
      pictures.close()
    }
    var clock = KeyFrameClock(interval: keyFrameInterval)
    let frameInterval = encoder.configuration.frameRate.interval
    var failures = 0
    // Room first, frame afterwards: a frame that was taken out early would grow old while a newer one arrives.
    while let picture = pictures.beginWrite() {
      guard let waiting = mailbox.take() else {
        pictures.recycle(picture)
        return
      }
      if keyFrameRequest.take() { clock.request() }
      do throws(EncoderError) {
        try encode(consume waiting, into: picture, clock: &clock, frameInterval: frameInterval)
        failures = 0
        pictures.commit(picture)
      } catch {
        pictures.recycle(picture)
        statistics.encode.withLock { $0.errors += 1 }
        // What follows a missing picture cannot be decoded without a fresh start.
        clock.request()
        failures += 1
        guard failures < Self.failureLimit else { throw error }
      }
    }
  }

  private func encode(
    _ waiting: consuming WaitingFrame, into picture: CodedPicture, clock: inout KeyFrameClock,
    frameInterval: MediaTime
  ) throws(EncoderError) {
    let begin = MediaTime.now()
    let wait = begin - waiting.since
    let timestamp = waiting.frame.timestamp
    let isDue = clock.isDue(at: timestamp, frameInterval: frameInterval)
    var isStored = false
    var isKeyFrame = false
    var bytes = 0
    try encoder.encode(waiting.frame, keyFrame: isDue) { unit in
      isStored = picture.store(unit)
      isKeyFrame = unit.isKeyFrame
      bytes = unit.payloadBytes
    }
    guard isStored else { throw .output(library: encoder.name, "a picture of \(bytes) bytes has no room") }
    if isKeyFrame { clock.keyFrameDelivered(at: timestamp) }
    picture.encoded = .now()
    let duration = picture.encoded - begin
    statistics.encode.withLock {
      $0.frames += 1
      if isKeyFrame { $0.keyFrames += 1 }
      $0.bytes += bytes
      $0.wait.record(wait)
      $0.latency.record(duration)
    }
  }
}

/// A wish for a key frame, from any thread to the encode stage.
final class KeyFrameRequest: Sendable {
  private let isSet = Atomic(false)

  /// Asks.
  func set() {
    isSet.store(true, ordering: .relaxed)
  }

  /// Whether somebody asked since the last call.
  func take() -> Bool {
    isSet.load(ordering: .relaxed) && isSet.exchange(false, ordering: .relaxed)
  }
}
