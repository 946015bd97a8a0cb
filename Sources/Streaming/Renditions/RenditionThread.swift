import Encoding
package import Media
package import Platform
import Synchronization

/// The thread of a rendition's encoder. Thread and encoder exist only while the rendition is needed.
///
/// The encode stage offers frames. The newest copy waits in a slot for the encoder. After a failure the thread waits, and then makes
/// another encoder if one is still needed.
package final class RenditionThread: @unchecked Sendable {
  // Sendable: `monitor` guards what is named so. The thread alone uses `failures`, or the caller who could not start the thread. All
  // else is constant, atomic or under a mutex.

  /// Starts a thread of that name.
  package typealias StartThread =
    @Sendable (_ name: String, _ body: @escaping @Sendable () -> Void) throws(SystemFailure) -> Void

  /// The failures of the encoder, and their ends, for the terminal.
  let events = EventQueue<RenditionEvent>()
  /// The figures, without size and state.
  let figures = Mutex(RenditionStatistics())
  /// Copies or scales the frames.
  let reducer: FrameReducer
  private let kind: RenditionKind
  private let requests: EncoderRequests
  private let frameRate: FrameRate
  private let processors: ProcessorSet?
  private let phase = Atomic(Phase.resting.rawValue)
  /// The time in nanoseconds until which the encoder is needed.
  private let neededUntil = Atomic<Int64>(0)
  /// The time in nanoseconds of the next attempt after a failure.
  private let retry = Atomic<Int64>(0)
  private var failures: EncoderFailures
  private let startThread: StartThread
  /// `true` if the last thread could not be started.
  private let lacksThread = Atomic(false)

  /// The lock of the slot and the phase, and of what the owner names so. Its condition wakes the thread.
  let monitor = Monitor()
  // Under the monitor.
  private var slot: RenditionFrame?
  /// `true` if the frame in the slot is a key frame.
  private var holdsKeyFrame = false
  /// `true` if the encoder has another color or size than it should, and is to be made anew.
  private var isStale = false
  /// `true` from the thread's start to its end.
  private var hasThread = false

  /// The time for which the encoder is kept after it was last needed.
  package static let restTime = Duration.seconds(10)
  /// The longest wait for the end of an encoder.
  static let endPatience = Duration.seconds(2)
  /// The number of frames in a row that may fail.
  private static let failureLimit = 30

  /// Creates a thread that does not run yet.
  ///
  /// - Parameters:
  ///   - requests: the requests to the encoder.
  ///   - frameRate: the nominal frame rate.
  ///   - reducer: copies or scales the frames.
  ///   - processors: the processors on which the encoder runs; nil for those of the thread that first needs it.
  ///   - pauses: the pause after a first failure, and the longest one.
  ///   - startThread: starts the thread.
  package init(
    _ kind: RenditionKind, _ requests: EncoderRequests, frameRate: FrameRate, reducer: FrameReducer,
    on processors: ProcessorSet? = nil, pauses: ClosedRange<Duration> = EncoderFailures.pauses,
    startThread: @escaping StartThread = RenditionThread.startDetached
  ) {
    (self.kind, self.requests, self.frameRate) = (kind, requests, frameRate)
    (self.reducer, self.processors) = (reducer, processors)
    failures = EncoderFailures(pauses)
    self.startThread = startThread
  }

  /// Starts a thread that nobody waits for.
  @Sendable package static func startDetached(
    _ name: String, _ body: @escaping @Sendable () -> Void
  ) throws(SystemFailure) { try NamedThread(name, body).detach() }

  private func move(to phase: Phase) { self.phase.store(phase.rawValue, ordering: .releasing) }

  // MARK: Any thread

  /// The state of the encoder.
  package var present: Phase { Phase(rawValue: phase.load(ordering: .acquiring)) ?? .closed }

  /// `true` if the encoder takes frames.
  var isReady: Bool { phase.load(ordering: .acquiring) == Phase.ready.rawValue }

  /// Returns `true` if there is an encoder, or if one may be made at `now`: for a while after a failure none may.
  func isPossible(at now: Instant) -> Bool {
    switch present {
    case .opening, .ready: true
    case .resting, .failed: isDue(at: now)
    case .closed: false
    }
  }

  private func isDue(at now: Instant) -> Bool { pause(at: now) == .zero }

  /// Returns the time from `now` until an encoder may be made after a failure; zero if one may be made.
  func pause(at now: Instant) -> Duration {
    max(.zero, Instant(nanoseconds: retry.load(ordering: .relaxed)) - now)
  }

  /// Returns the figures for pictures of `size`; nil if there was no encoder yet, and none has failed.
  func statistics(size: PictureSize) -> RenditionStatistics? {
    var statistics = figures.withLock { $0 }
    guard statistics.openings > 0 || statistics.failure != nil else { return nil }
    (statistics.size, statistics.isRunning) = (size, isReady)
    return statistics
  }

  /// Notes the time until which the encoder is needed; nil for no end. A former end is forgotten.
  package func keep(until end: Instant?) { neededUntil.store(end?.nanoseconds ?? .max, ordering: .relaxed) }

  /// Notes that the encoder is needed for ``restTime`` more, where it was needed without an end.
  func letRest(at now: Instant) {
    guard neededUntil.load(ordering: .relaxed) == .max else { return }
    monitor.locked {
      keep(until: now + Self.restTime)
      monitor.signal()
    }
  }

  /// Starts the thread if there is none and if an encoder may be made.
  package func start(_ rendition: some ThreadedRendition) {
    let isStarting = monitor.locked { () -> Bool in
      guard present == .resting, isDue(at: .now()) else { return false }
      move(to: .opening)
      hasThread = true
      lacksThread.store(false, ordering: .relaxed)
      return true
    }
    guard isStarting else { return }
    do throws(SystemFailure) {
      // No marks: a frame's way in a trace is that of the stream's own picture.
      try startThread(kind.threadName) { [self] in
        guard let processors else { return run(rendition) }
        processors.confining { run(rendition) }
      }
    } catch {
      fail("no thread: \(error)")
      monitor.locked { rest() }
      lacksThread.store(true, ordering: .relaxed)
    }
  }

  /// Starts the thread where it could not be started before, once the pause has passed, if an encoder is still needed. Mostly this
  /// costs one load.
  package func startAgain(_ rendition: some ThreadedRendition) {
    guard lacksThread.load(ordering: .relaxed) else { return }
    let now = Instant.now()
    guard isDue(at: now), now.nanoseconds < neededUntil.load(ordering: .relaxed) else { return }
    start(rendition)
  }

  /// Runs `change` under the lock. If it returns `true`, the encoder is made anew.
  func renew(_ change: () -> Bool) {
    monitor.locked {
      guard change() else { return }
      isStale = true
      monitor.signal()
    }
  }

  /// Returns what `read` reads under the lock. The encoder that is made of that is up to date.
  func latest<Value>(_ read: () -> Value) -> Value {
    monitor.locked {
      isStale = false
      return read()
    }
  }

  /// Ends encoder and thread for good.
  func close() {
    monitor.locked {
      move(to: .closed)
      slot = nil
      monitor.signal()
    }
  }

  /// Waits until the encoder has ended after ``close()``, but no longer than ``endPatience``: its driver may hang.
  func waitUntilEnd() {
    let deadline = Instant.now() + Self.endPatience
    monitor.locked {
      while hasThread, monitor.wait(until: deadline) {}
    }
  }

  // MARK: The encode stage

  /// Offers a copy of a frame to the encoder, in the size that it has once it is rotated. Returns `false` if there is no memory for
  /// it.
  @discardableResult
  func offer(_ frame: borrowing Frame, size: PictureSize, isKeyFrame: Bool = false) -> Bool {
    let copy: Frame
    do throws(EncoderError) {
      copy = try reducer.reduce(frame, to: size)
    } catch {
      figures.withLock { $0.dropped += 1 }
      return false
    }
    if put(RenditionFrame(frame: copy, isKeyFrame: isKeyFrame)) { figures.withLock { $0.dropped += 1 } }
    return true
  }

  /// Puts a frame into the slot. Returns `true` if this frame, or the one there, is lost. A key frame waits until the encoder takes it:
  /// an encoder that takes every second frame would else never get a key frame that falls on the others.
  private func put(_ frame: consuming RenditionFrame) -> Bool {
    let isKeyFrame = frame.isKeyFrame
    var incoming: RenditionFrame? = consume frame
    let displaced = monitor.locked { () -> RenditionFrame? in
      guard present == .ready, slot == nil || !holdsKeyFrame || isKeyFrame else { return incoming.take() }
      let displaced = slot.take()
      slot = incoming.take()
      holdsKeyFrame = isKeyFrame
      return displaced
    }
    monitor.signal()
    return displaced != nil
  }

  // MARK: The thread

  /// Has encoders made, one after the other, while the rendition is needed.
  private func run(_ rendition: some ThreadedRendition) {
    var isAnew = false
    while isNeeded() {
      var encoder: (any VideoEncoder)?
      do {
        let (configuration, pictures) = try rendition.prepare(isAnew: isAnew)
        guard present == .opening else { throw EncoderError.stopped }
        let made = try rendition.makeEncoder(configuration)
        encoder = made
        try made.prepare()
        try encode(by: made, into: pictures, of: rendition)
        isAnew = true
      } catch {
        isAnew = false
        fail("\(error)")
      }
      encoder?.stop()
      // Without the encoder, its frames need no memory.
      reducer.removeAll()
      waitToRetry()
    }
  }

  /// Returns `true` if there is to be an encoder; else the thread ends.
  private func isNeeded() -> Bool {
    monitor.locked {
      guard present != .closed, Instant.now().nanoseconds < neededUntil.load(ordering: .relaxed) else {
        rest()
        return false
      }
      move(to: .opening)
      return true
    }
  }

  /// Notes the end of the thread. The caller holds the lock.
  private func rest() {
    if present != .closed { move(to: .resting) }
    hasThread = false
    monitor.signal()
  }

  /// Encodes frames until the encoder is needed no longer, or is to be made anew.
  ///
  /// - Throws: the error with which the encoder failed for good.
  private func encode(
    by encoder: any VideoEncoder, into pictures: CodedPictureQueue, of rendition: some ThreadedRendition
  ) throws(EncoderError) {
    let writer = CodedPictureWriter(pictures)
    defer { writer.rest() }
    let sink = RenditionSink(writer)
    guard let former = begin(encoder.name) else { return }
    var rate = MeasuredFrameRate(nominal: frameRate)
    var inARow = 0
    var last = encoder.counters
    var isSoftware = EncoderSelector.softwareCodec(ofEncoder: encoder.name) != nil
    while writer.reserve(), let waiting = next() {
      let begin = Instant.now()
      var failure: EncoderError?
      do throws(EncoderError) {
        if let restrictions = requests.takeRestrictions() { encoder.restrict(restrictions) }
        try follow(rate.change(at: waiting.frame.timestamp), encoder)
        let isKeyFrame = rendition.isKeyFrame(waiting, frameInterval: encoder.configuration.frameRate.interval)
        try encoder.encode(waiting.frame, keyFrame: isKeyFrame, to: sink)
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
        if case .lost = failure { throw failure }
        guard inARow < Self.failureLimit else { throw failure }
        continue
      }
      inARow = 0
      if hasPicture, failures.works(at: end) { events.add(.recovered(kind, encoder: encoder.name)) }
      if rendition.isOutdated(at: end) { monitor.locked { isStale = true } }
    }
    failures.rests(at: .now())
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
      slot = nil
      move(to: .ready)
      return former
    }
  }

  /// Waits for the next frame; nil if the encoder is needed no longer, or is to be made anew.
  private func next() -> RenditionFrame? {
    monitor.locked { () -> RenditionFrame? in
      while present == .ready {
        let end = Instant(nanoseconds: neededUntil.load(ordering: .relaxed))
        if isStale || Instant.now() >= end {
          move(to: .opening)
          break
        }
        if slot != nil { return slot.take() }
        _ = monitor.wait(until: end)
      }
      slot = nil
      return nil
    }
  }

  /// Tells the encoder a new frame rate, or a requested bitrate.
  private func follow(_ measured: FrameRate?, _ encoder: any VideoEncoder) throws(EncoderError) {
    let bitrate = requests.takeBitrate()
    guard measured != nil || bitrate != nil else { return }
    let present = encoder.configuration
    try encoder.change(bitrate: bitrate ?? present.bitrate, frameRate: measured ?? present.frameRate)
  }

  /// Notes a failure. No encoder is made for a while.
  private func fail(_ reason: String) {
    monitor.locked {
      slot = nil
      // What ends with the stream is no failure.
      guard present != .closed else { return }
      let now = Instant.now()
      let pause = failures.failed(at: now)
      retry.store((now + pause).nanoseconds, ordering: .relaxed)
      figures.withLock { ($0.failure, $0.failures) = (reason, $0.failures + 1) }
      move(to: .failed)
      events.add(.failed(kind, reason: reason, retry: pause))
    }
  }

  /// Waits after a failure until the encoder is to be tried again, or needed no longer.
  private func waitToRetry() {
    monitor.locked {
      while present == .failed {
        let end = min(retry.load(ordering: .relaxed), neededUntil.load(ordering: .relaxed))
        guard Instant.now().nanoseconds < end else { return }
        _ = monitor.wait(until: Instant(nanoseconds: end))
      }
    }
  }
}
