import CTracing
import Encoding
package import Media
package import Platform
import Synchronization

/// Takes the newest frame, encodes it, and hands the coded pictures to the consumers of the track. Runs on its own
/// thread.
package struct EncodeStage<Encoder: VideoEncoder>: Sendable {
  let encoder: Encoder
  let keyFrameInterval: Duration
  let mailbox: Mailbox<WaitingFrame>
  let consumers: CodedPictureConsumers
  let statistics: StatisticsRecorder
  /// The requests to the encoder, which are taken with the next frame.
  let requests: EncoderRequests
  /// Scales frames where the encoder is restricted to smaller ones.
  let reducer: FrameReducer
  /// The receiver of the sizes that the encoder takes or refuses.
  let rotation: PictureRotation
  /// The receiver of each frame that the stage has finished with.
  let pictureStage: PictureStage
  /// The small rendition of the frames; nil where the stream has none.
  var small: SmallRendition?
  /// The frames in H.264 for viewers that cannot decode the stream's own codec; nil where the stream has none.
  var h264: H264Rendition?

  /// Creates a stage; ``run()`` starts it.
  package init(
    encoder: Encoder, keyFrameInterval: Duration, mailbox: Mailbox<WaitingFrame>, consumers: CodedPictureConsumers,
    statistics: StatisticsRecorder, requests: EncoderRequests, reducer: FrameReducer, rotation: PictureRotation,
    pictureStage: PictureStage, small: SmallRendition? = nil, h264: H264Rendition? = nil
  ) {
    self.encoder = encoder
    self.keyFrameInterval = keyFrameInterval
    self.mailbox = mailbox
    self.consumers = consumers
    self.statistics = statistics
    self.requests = requests
    self.reducer = reducer
    self.rotation = rotation
    self.pictureStage = pictureStage
    self.small = small
    self.h264 = h264
  }

  /// The number of frames in a row that may fail before the pipeline gives up.
  static var failureLimit: Int { 30 }

  /// Runs until the mailbox is closed and empty.
  ///
  /// - Throws: ``EncoderError`` where the encoder is lost, or ``failureLimit`` frames in a row could not be encoded.
  package func run() throws(EncoderError) {
    defer {
      encoder.stop()
      consumers.close()
    }
    var clock = KeyFrameClock(interval: keyFrameInterval)
    var rate = MeasuredFrameRate(nominal: encoder.configuration.frameRate)
    var (changes, undecodable) = (0, 0)
    var failures = 0
    var lateness = EncodeLateness()
    // Software has efforts, and hardware has quality levels.
    var isSoftware = EncoderSelector.softwareCodec(ofEncoder: encoder.name) != nil
    let delivery = Delivery(consumers)
    // Room first, frame afterwards: a frame that was taken out early would grow old while a newer one arrives.
    while consumers.reserve() {
      guard let waiting = mailbox.take() else { return try flush(delivery) }
      guard requests.isWanted else {
        // The next viewer begins with a key frame.
        clock.request()
        rate.rest()
        FrameMark.skipped(waiting.frame.timestamp, .unwatched)
        h264?.offer(waiting.frame)
        show(waiting.frame)
        rotation.noteSkipped()
        statistics.encode.withLock {
          $0.unwatched += 1
          $0.handled += 1
        }
        continue
      }
      if requests.takeKeyFrame() { clock.request() }
      if let restrictions = requests.takeRestrictions() { encoder.restrict(restrictions) }
      let size = waiting.frame.rotatedSize
      let timestamp = waiting.frame.timestamp
      // A coded picture keeps its size, and its time says nothing about an encoder.
      let isCoded = waiting.frame.coded != nil
      // Before the encoder, so that both encode at the same time.
      h264?.offer(waiting.frame)
      small?.begin(at: timestamp, isCoded: isCoded)
      let reduced = isCoded ? size : encoder.frameSize(for: size)
      var duration: Duration?
      do throws(EncoderError) {
        try follow(rate.change(at: timestamp))
        duration = try encode(consume waiting, of: reduced, delivery, clock: &clock)
        rotation.noteEncoded(size)
        failures = 0
      } catch {
        // The encoder has not followed the frame's rotation: the picture goes back to its former orientation.
        if encoder.configuration.size != reduced { rotation.refuse(size, reason: error) }
        rotation.noteSkipped()
        FrameMark.dropped(timestamp, .encoderError)
        statistics.encode.withLock { $0.errors += 1 }
        if case .lost = error { throw error }
        // The pictures after a missing one cannot be decoded without a key frame.
        clock.request()
        failures += 1
        guard failures < Self.failureLimit else { throw error }
      }
      let counters = encoder.counters
      let name = counters.changes == changes ? nil : encoder.name
      changes = counters.changes
      if let name {
        // The late frames were another encoder's, and the time of this one may be that of two.
        lateness = EncodeLateness()
        isSoftware = EncoderSelector.softwareCodec(ofEncoder: name) != nil
      } else if let duration, !isCoded, requests.isGoverned {
        judge(duration, &lateness, isSoftware: isSoftware)
      }
      if counters.undecodable > undecodable {
        statistics.drop(.undecodable, count: counters.undecodable - undecodable)
        FrameMark.dropped(timestamp, .undecodable)
        undecodable = counters.undecodable
      }
      statistics.encode.withLock {
        $0.handled += 1
        $0.encoder = counters
        if let name { $0.encoderName = name }
      }
    }
  }

  /// Tells the encoder a new frame rate, or a requested bitrate.
  private func follow(_ measured: FrameRate?) throws(EncoderError) {
    let bitrate = requests.takeBitrate()
    guard measured != nil || bitrate != nil else { return }
    let configuration = encoder.configuration
    try encoder.change(
      bitrate: bitrate ?? configuration.bitrate, frameRate: measured ?? configuration.frameRate)
    if let measured { statistics.encode.withLock { $0.frameRate = measured } }
  }

  /// Records the encode time for the governor of the encoder at work. If frames are late, takes the lesser effort or the faster
  /// quality level that the governor has named. The governor itself measures once a second, which would be too late.
  private func judge(_ duration: Duration, _ lateness: inout EncodeLateness, isSoftware: Bool) {
    statistics.recordEncodeTime(duration)
    guard lateness.note(duration, interval: encoder.configuration.frameRate.interval) else { return }
    if let restrictions = requests.takeFallback(ofHardware: !isSoftware) { encoder.restrict(restrictions) }
  }

  /// Encodes the frame, and returns the time that this took.
  private func encode(
    _ waiting: consuming WaitingFrame, of size: PictureSize, _ delivery: Delivery, clock: inout KeyFrameClock
  ) throws(EncoderError) -> Duration {
    let begin = Instant.now()
    let wait = begin - waiting.since
    let timestamp = waiting.frame.timestamp
    let isCoded = waiting.frame.coded != nil
    let isDue = clock.isDue(at: timestamp, frameInterval: encoder.configuration.frameRate.interval)
    delivery.begin()
    defer { delivery.end() }
    let done: Instant
    if size == waiting.frame.rotatedSize {
      done = try encode(waiting.frame, keyFrame: isDue, delivery)
      small?.offer(waiting.frame)
      pictureStage.offer(waiting.frame)
    } else {
      let reduced = try reducer.reduce(waiting.frame, to: size)
      done = try encode(reduced, keyFrame: isDue, delivery)
      small?.offer(waiting.frame)
      pictureStage.offer(reduced)
    }
    guard delivery.tooLarge == 0 else {
      throw .output(library: encoder.name, "a picture of \(delivery.tooLarge) bytes has no room")
    }
    // An encoder with lookahead delivers the key frame later; another one may have made a key frame on its own. A camera
    // that codes makes one some frames after the request.
    if isDue && !isCoded || delivery.newestKeyFrame == timestamp { clock.keyFrameDelivered(at: timestamp) }
    let duration = done - begin
    statistics.encode.withLock {
      delivery.count(in: &$0)
      $0.wait.record(wait)
      $0.latency.record(duration)
      $0.busy = $0.busy + duration
    }
    return duration
  }

  /// Encodes `frame`.
  ///
  /// - Returns: The time at which the encoder was done.
  private func encode(
    _ frame: borrowing Frame, keyFrame isDue: Bool, _ delivery: Delivery
  ) throws(EncoderError) -> Instant {
    let timestamp = frame.timestamp.nanoseconds
    let begin = nightjar_encode_begin(timestamp)
    defer { nightjar_encode_end(timestamp, begin, Int64(delivery.bytes), Int64(delivery.keyFrames)) }
    try encoder.encode(frame, keyFrame: isDue, to: delivery)
    return delivery.stored ?? .now()
  }

  /// Offers a frame that is not encoded to the viewers of JPEG pictures, in the size that the encoder would give it.
  private func show(_ frame: borrowing Frame) {
    guard pictureStage.isAwaited, frame.coded == nil else { return }
    let size = encoder.frameSize(for: frame.rotatedSize)
    // Where there is no memory to scale the frame, the waiting viewers are told once their time is up.
    guard size != frame.rotatedSize else { return pictureStage.offer(frame) }
    if let reduced = try? reducer.reduce(frame, to: size) { pictureStage.offer(reduced) }
  }

  /// Queues the pictures that the encoder has held back.
  private func flush(_ delivery: Delivery) throws(EncoderError) {
    delivery.begin()
    defer { delivery.end() }
    try encoder.flush { delivery.take($0) }
    statistics.encode.withLock { delivery.count(in: &$0) }
  }
}

/// The output of one encoder call: mostly one picture, or one picture in parts; with lookahead none or several.
private final class Delivery: AccessUnitSink {
  private let consumers: CodedPictureConsumers
  private var openBytes = 0
  private var frames = 0
  /// The number of key frames among the pictures.
  private(set) var keyFrames = 0
  /// The bytes of the delivered pictures.
  private(set) var bytes = 0
  /// The size of a picture that did not fit; 0 where all fitted.
  private(set) var tooLarge = 0
  /// The timestamp of the newest key frame.
  private(set) var newestKeyFrame: Instant?
  /// The time at which the last picture was stored, which is when the encoder was done.
  private(set) var stored: Instant?

  /// Creates a sink that delivers to `consumers`.
  init(_ consumers: CodedPictureConsumers) {
    self.consumers = consumers
  }

  /// Begins a call for which there is room.
  func begin() {
    (frames, keyFrames, bytes, tooLarge) = (0, 0, 0, 0)
    (newestKeyFrame, stored) = (nil, nil)
  }

  /// Hands `unit` on.
  func take(_ unit: borrowing AccessUnit) {
    if unit.isFirstPart { openBytes = 0 }
    openBytes += unit.payloadBytes
    // The clock is read once for each picture: the time of a part that is not the last is not needed.
    let now: Instant = unit.isLastPart ? .now() : .zero
    let outcome = consumers.take(unit, encoded: now)
    if outcome == .tooLarge { tooLarge = openBytes }
    guard outcome == .taken, unit.isLastPart else { return }
    stored = now
    frames += 1
    bytes += openBytes
    if unit.isKeyFrame {
      keyFrames += 1
      newestKeyFrame = unit.timestamp
    }
  }

  /// Ends a picture that the encoder has not ended.
  func end() { consumers.breakOff() }

  func count(in figures: inout StatisticsRecorder.Encode) {
    figures.frames += frames
    figures.keyFrames += keyFrames
    figures.bytes += bytes
  }
}

extension EncoderCounters {
  /// The number of times that another encoder took over.
  var changes: Int { failovers + recoveries + switches + adaptations + handovers }
}
