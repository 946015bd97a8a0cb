import Encoding
import Media
import Platform
import Synchronization

/// The thread `nj-small`, which has the encoder.
extension SmallRendition {
  /// The number of frames in a row that may fail.
  private static let failureLimit = 30

  /// Counts a thread that ends.
  func noteThreadEnd() {
    monitor.locked {
      threads -= 1
      monitor.signal()
    }
  }

  /// Makes the encoder, and encodes until nobody needs it any more, or it fails.
  func run() {
    defer { noteThreadEnd() }
    let (encoder, queue): (any VideoEncoder, CodedPictureQueue)
    do {
      (encoder, queue) = try open()
    } catch {
      return fail("\(error)")
    }
    defer { encoder.stop() }
    let writer = CodedPictureWriter(queue)
    defer { writer.rest() }
    guard let former = begin(encoder.name) else { return }
    encode(by: encoder, after: former, writer)
  }

  /// Encodes the frames that come.
  ///
  /// - Parameter former: the counters of the encoders before this one.
  private func encode(by encoder: any VideoEncoder, after former: EncoderCounters, _ writer: CodedPictureWriter) {
    let sink = SmallSink(writer)
    var rate = MeasuredFrameRate(nominal: configuration.frameRate)
    var inARow = 0
    var last = encoder.counters
    var isSoftware = EncoderSelector.softwareCodec(ofEncoder: encoder.name) != nil
    while writer.reserve(), let waiting = next() {
      let begin = Instant.now()
      var failure: EncoderError?
      do throws(EncoderError) {
        if let restrictions = requests.takeRestrictions() { encoder.restrict(restrictions) }
        try follow(rate.change(at: waiting.frame.timestamp), encoder)
        try encoder.encode(waiting.frame, keyFrame: waiting.isKeyFrame, to: sink)
      } catch {
        failure = error
      }
      let end = Instant.now()
      let counters = encoder.counters
      // Another encoder of the lineup may have taken over, with this frame or before it.
      let name = counters.changes == last.changes ? nil : encoder.name
      if let name { isSoftware = EncoderSelector.softwareCodec(ofEncoder: name) != nil }
      last = counters
      figures.withLock {
        $0.frames += sink.frames
        $0.bytes += sink.bytes
        // Hardware takes time and no processor.
        if isSoftware { $0.processing = $0.processing + (end - begin) }
        $0.encoder = former + counters
        if let name { $0.encoderName = name }
        if failure != nil { $0.dropped += 1 }
      }
      // The pictures after a missing one cannot be decoded.
      if sink.isLosing || failure != nil { requests.setKeyFrame() }
      let hasPicture = sink.frames > 0
      (sink.frames, sink.bytes, sink.isLosing) = (0, 0, false)
      if let failure {
        inARow += 1
        if case .lost = failure { return fail(failure.description) }
        guard inARow < Self.failureLimit else { return fail(failure.description) }
      } else {
        inARow = 0
        if hasPicture, failures.withLock({ $0.works(at: end) }) { events.add(.recovered(encoder: encoder.name)) }
      }
    }
    failures.withLock { $0.rests(at: .now()) }
  }

  /// Makes the encoder, and what it needs.
  private func open() throws -> (any VideoEncoder, CodedPictureQueue) {
    try reducer.prepare(from: sourceSize, to: Self.size(of: sourceSize))
    let queue = try pictures ?? CodedPictureQueue(capacity: unitBytes, held: heldLimit, readWith: fullPictures)
    var configuration = configuration
    let restrictions = requests.takeLatestRestrictions()
    (configuration.effort, configuration.vaapiQuality) = (restrictions.effort, restrictions.vaapiQuality)
    configuration.color = monitor.locked {
      isStale = false
      return color
    }
    guard present == .opening else { throw EncoderError.stopped }
    let encoder = try makeEncoder(configuration)
    do throws(EncoderError) {
      try encoder.prepare()
    } catch {
      encoder.stop()
      throw error
    }
    let isOpen = monitor.locked { () -> Bool in
      guard present == .opening else { return false }
      if self.queue == nil {
        self.queue = queue
        hasQueue.store(true, ordering: .releasing)
      }
      return true
    }
    guard isOpen else {
      encoder.stop()
      throw EncoderError.stopped
    }
    return (encoder, queue)
  }

  /// Lets the encode stage offer frames. Returns the counters of the encoders before; nil where the stream has ended.
  private func begin(_ name: String) -> EncoderCounters? {
    let former = figures.withLock { figures -> EncoderCounters in
      figures.openings += 1
      (figures.encoderName, figures.failure) = (name, nil)
      return figures.encoder
    }
    requests.renewBitrate()
    requests.setKeyFrame()
    return monitor.locked { () -> EncoderCounters? in
      guard present == .opening else { return nil }
      // The encode stage may have put one as the former encoder ended.
      slot = nil
      move(to: .ready)
      return former
    }
  }

  /// Waits for the next frame; nil if the encoder is needed no longer, or is to be made anew.
  private func next() -> SmallFrame? {
    monitor.locked { () -> SmallFrame? in
      while true {
        guard present == .ready else {
          slot = nil
          return nil
        }
        let end = Instant(nanoseconds: neededUntil.load(ordering: .relaxed))
        if isStale || Instant.now() >= end {
          slot = nil
          move(to: .resting)
          return nil
        }
        if slot != nil { return slot.take() }
        _ = monitor.wait(until: end)
      }
    }
  }

  /// Tells the encoder a new frame rate, or a requested bitrate.
  private func follow(_ measured: FrameRate?, _ encoder: any VideoEncoder) throws(EncoderError) {
    let bitrate = requests.takeBitrate()
    guard measured != nil || bitrate != nil else { return }
    let present = encoder.configuration
    try encoder.change(bitrate: bitrate ?? present.bitrate, frameRate: measured ?? present.frameRate)
  }

  /// Ends the encoder for a while, after a failure.
  func fail(_ reason: String) {
    let now = Instant.now()
    let isOver = monitor.locked { present == .closed }
    // What ends with the stream is no failure.
    guard !isOver else { return monitor.locked { slot = nil } }
    let pause = failures.withLock { $0.failed(at: now) }
    retry.store((now + pause).nanoseconds, ordering: .relaxed)
    let isEnded = monitor.locked { () -> Bool in
      slot = nil
      guard present != .closed else { return true }
      move(to: .failed)
      return false
    }
    guard !isEnded else { return }
    figures.withLock {
      $0.failure = reason
      $0.failures += 1
    }
    events.add(.failed(reason: reason, retry: pause))
  }
}
