import CTracing
import Encoding
import FrameTracing
import Media
import Synchronization

/// Takes the newest frame, encodes it, and queues the coded pictures for the network. Runs on its own thread.
struct EncodeStage<Encoder: VideoEncoder>: Sendable {
  let encoder: Encoder
  let keyFrameInterval: MediaTime
  let mailbox: Mailbox<WaitingFrame>
  let pictures: CodedPictureQueue
  let statistics: StatisticsRecorder
  /// What others ask of the encoder; taken with the next frame.
  let requests: EncoderRequests
  /// Scales frames where the encoder is to do with smaller ones.
  let reducer: FrameReducer
  /// Who is told which sizes the encoder takes.
  let turn: PictureTurn
  /// Who is offered each frame once it is done with.
  let pictureStage: PictureStage

  /// How many frames in a row may fail before the pipeline gives up.
  static var failureLimit: Int { 30 }

  /// Runs until the mailbox is closed and empty.
  ///
  /// - Throws: ``EncoderError`` where the encoder is lost, or ``failureLimit`` frames in a row could not be encoded.
  func run() throws(EncoderError) {
    defer {
      encoder.stop()
      pictures.close()
    }
    var clock = KeyFrameClock(interval: keyFrameInterval)
    var rate = MeasuredFrameRate(nominal: encoder.configuration.frameRate)
    var changes = 0
    var failures = 0
    let delivery = Delivery(pictures)
    // Room first, frame afterwards: a frame that was taken out early would grow old while a newer one arrives.
    while let picture = pictures.beginWrite() {
      guard let waiting = mailbox.take() else { return try flush(delivery, into: picture) }
      guard requests.isWanted else {
        // Whoever comes next begins with a key frame.
        clock.request()
        rate.rest()
        pictures.abandon(picture)
        FrameMark.skipped(waiting.frame.timestamp, .unwatched)
        show(waiting.frame)
        statistics.encode.withLock {
          $0.unwatched += 1
          $0.handled += 1
        }
        continue
      }
      if requests.takeKeyFrame() { clock.request() }
      if let restrictions = requests.takeRestrictions() { encoder.restrict(restrictions) }
      let size = waiting.frame.laidSize
      let timestamp = waiting.frame.timestamp
      let reduced = encoder.frameSize(for: size)
      do throws(EncoderError) {
        try follow(rate.change(at: timestamp))
        try encode(consume waiting, of: reduced, into: picture, delivery, clock: &clock)
        turn.noteEncoded(size)
        failures = 0
      } catch {
        // One that has not turned with the frame: then the picture turns back.
        if encoder.configuration.size != reduced { turn.refuse(size, reason: error) }
        FrameMark.dropped(timestamp, .encoderError)
        statistics.encode.withLock { $0.errors += 1 }
        if case .lost = error { throw error }
        // What follows a missing picture cannot be decoded without a fresh start.
        clock.request()
        failures += 1
        guard failures < Self.failureLimit else { throw error }
      }
      let counters = encoder.counters
      let name = counters.changes == changes ? nil : encoder.name
      changes = counters.changes
      statistics.encode.withLock {
        $0.handled += 1
        $0.encoder = counters
        if let name { $0.encoderName = name }
      }
    }
  }

  /// Tells the encoder of a new frame rate, or of a bitrate that was asked for.
  private func follow(_ measured: FrameRate?) throws(EncoderError) {
    let bitrate = requests.takeBitrate()
    guard measured != nil || bitrate != nil else { return }
    let configuration = encoder.configuration
    try encoder.change(
      bitrate: bitrate ?? configuration.bitrate, frameRate: measured ?? configuration.frameRate)
    if let measured { statistics.encode.withLock { $0.frameRate = measured } }
  }

  private func encode(
    _ waiting: consuming WaitingFrame, of size: PictureSize, into picture: CodedPicture, _ delivery: Delivery,
    clock: inout KeyFrameClock
  ) throws(EncoderError) {
    let begin = MediaTime.now()
    let wait = begin - waiting.since
    let timestamp = waiting.frame.timestamp
    let isDue = clock.isDue(at: timestamp, frameInterval: encoder.configuration.frameRate.interval)
    delivery.begin(picture)
    defer { delivery.end() }
    let done: MediaTime
    if size == waiting.frame.laidSize {
      done = try encode(waiting.frame, keyFrame: isDue, delivery)
      pictureStage.offer(waiting.frame)
    } else {
      let reduced = try reducer.reduce(waiting.frame, to: size)
      done = try encode(reduced, keyFrame: isDue, delivery)
      pictureStage.offer(reduced)
    }
    guard delivery.tooLarge == 0 else {
      throw .output(library: encoder.name, "a picture of \(delivery.tooLarge) bytes has no room")
    }
    // An encoder that looks ahead delivers it later; another may have made one of its own accord.
    if isDue || delivery.newestKeyFrame == timestamp { clock.keyFrameDelivered(at: timestamp) }
    let duration = done - begin
    statistics.encode.withLock {
      delivery.count(in: &$0)
      $0.wait.record(wait)
      $0.latency.record(duration)
      $0.busy = $0.busy + duration
    }
  }

  /// Has the encoder do its work; when it was done.
  private func encode(
    _ frame: borrowing Frame, keyFrame isDue: Bool, _ delivery: Delivery
  ) throws(EncoderError) -> MediaTime {
    let timestamp = frame.timestamp.nanoseconds
    let begin = nightjar_encode_begin(timestamp)
    defer { nightjar_encode_end(timestamp, begin, Int64(delivery.bytes), Int64(delivery.keyFrames)) }
    try encoder.encode(frame, keyFrame: isDue, to: delivery)
    return delivery.stored ?? .now()
  }

  /// Offers a frame that is not encoded to those who look at pictures, as large as if it were.
  private func show(_ frame: borrowing Frame) {
    guard pictureStage.isAwaited else { return }
    let size = encoder.frameSize(for: frame.laidSize)
    // Where there is no memory to scale it, whoever waits is told in time.
    guard size != frame.laidSize else { return pictureStage.offer(frame) }
    if let reduced = try? reducer.reduce(frame, to: size) { pictureStage.offer(reduced) }
  }

  /// Queues what the encoder has held back.
  private func flush(_ delivery: Delivery, into picture: CodedPicture) throws(EncoderError) {
    delivery.begin(picture)
    defer { delivery.end() }
    try encoder.flush { delivery.take($0) }
    statistics.encode.withLock { delivery.count(in: &$0) }
  }
}

/// What an encoder delivers in one call: mostly one picture, or that in parts, with lookahead none or several.
private final class Delivery: AccessUnitSink {
  private let pictures: CodedPictureQueue
  private var room: CodedPicture?
  /// A picture that was handed on in part.
  private var open: CodedPicture?
  private var openBytes = 0
  private var frames = 0
  /// Key frames among them.
  private(set) var keyFrames = 0
  /// Bytes of the pictures that it delivered.
  private(set) var bytes = 0
  /// The size of a picture that had no room, 0 where all had.
  private(set) var tooLarge = 0
  /// The timestamp of the newest key frame.
  private(set) var newestKeyFrame: MediaTime?
  /// When the last one was stored, which is when the encoder was done.
  private(set) var stored: MediaTime?

  /// Delivers to `pictures`.
  init(_ pictures: CodedPictureQueue) {
    self.pictures = pictures
  }

  /// Begins a call for which there is room in `first`.
  func begin(_ first: CodedPicture) {
    room = first
    (frames, keyFrames, bytes, tooLarge) = (0, 0, 0, 0)
    (newestKeyFrame, stored) = (nil, nil)
  }

  /// Hands `unit` on.
  func take(_ unit: borrowing AccessUnit) {
    let wanted: CodedPicture?
    if unit.isFirstPart {
      breakOff()
      wanted = room ?? pictures.beginWrite()
      room = nil
      openBytes = 0
    } else {
      wanted = open
    }
    // None where the queue is closed, and then nobody waits for it; or where the first part had no room.
    guard let picture = wanted else { return }
    openBytes += unit.payloadBytes
    guard picture.store(unit) else {
      tooLarge = openBytes
      if unit.isFirstPart { room = picture } else { breakOff() }
      return
    }
    // One look at the clock for each picture: when a part was done that is not the last, nobody asks.
    let now: MediaTime = unit.isLastPart ? .now() : .zero
    if unit.isLastPart { stored = now }
    open = unit.isLastPart ? nil : picture
    if unit.isLastPart {
      frames += 1
      bytes += openBytes
      if unit.isKeyFrame {
        keyFrames += 1
        newestKeyFrame = unit.timestamp
      }
    }
    pictures.commit(picture, encoded: now, isEnded: unit.isLastPart)
  }

  /// Gives back room that was not used, and ends a picture that the encoder did not.
  func end() {
    breakOff()
    if let room { pictures.abandon(room) }
    room = nil
  }

  private func breakOff() {
    if let open { pictures.breakOff(open) }
    open = nil
  }

  func count(in figures: inout StatisticsRecorder.Encode) {
    figures.frames += frames
    figures.keyFrames += keyFrames
    figures.bytes += bytes
  }
}

/// What is asked of the encoder, from any thread to the encode stage.
final class EncoderRequests: Sendable {
  private let keyFrame = Atomic(false)
  /// Bits a second; 0 where nothing was asked.
  private let bitrate = Atomic(0)
  private let wanted = Atomic(true)
  private let isRestricted = Atomic(false)
  private let restrictions = Mutex(EncoderRestrictions())

  /// Whether anybody watches.
  var isWanted: Bool { wanted.load(ordering: .relaxed) }

  /// Says whether anybody watches: where nobody does, the encoder rests.
  func setWanted(_ value: Bool) {
    wanted.store(value, ordering: .relaxed)
  }

  /// Asks for a key frame.
  func setKeyFrame() {
    keyFrame.store(true, ordering: .relaxed)
  }

  /// Asks for `value` bits a second.
  func setBitrate(_ value: Int) {
    bitrate.store(value, ordering: .relaxed)
  }

  /// Asks to do with less, or with as much as before.
  func setRestrictions(_ value: EncoderRestrictions) {
    restrictions.withLock { $0 = value }
    isRestricted.store(true, ordering: .releasing)
  }

  /// What was asked for since the last call.
  func takeRestrictions() -> EncoderRestrictions? {
    guard isRestricted.load(ordering: .relaxed), isRestricted.exchange(false, ordering: .acquiring) else { return nil }
    return restrictions.withLock { $0 }
  }

  /// Whether somebody asked for a key frame since the last call.
  func takeKeyFrame() -> Bool {
    keyFrame.load(ordering: .relaxed) && keyFrame.exchange(false, ordering: .relaxed)
  }

  /// The bitrate that was asked for since the last call.
  func takeBitrate() -> Int? {
    guard bitrate.load(ordering: .relaxed) != 0 else { return nil }
    let value = bitrate.exchange(0, ordering: .relaxed)
    return value == 0 ? nil : value
  }
}

extension EncoderCounters {
  /// How often another encoder took over.
  fileprivate var changes: Int { failovers + recoveries + switches + adaptations }
}
