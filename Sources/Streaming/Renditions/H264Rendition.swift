import Encoding
import Media
import Platform
import Synchronization

/// The pictures of a stream of another codec in H.264, for viewers that cannot decode that: by an encoder of its own on a thread
/// of its own (`nj-h264`), into a track of its own. Both exist only while the track has a viewer, and for ``restTime`` after.
///
/// The encode stage offers each frame before it encodes the frame, or skips it unwatched. While the rendition rests, that costs one
/// load. Otherwise the stage copies or scales the frame, and the newest copy waits for the encoder.
final class H264Rendition: @unchecked Sendable {
  // Sendable: `monitor` guards the slot and what is named so. All else is constant, atomic or under a mutex.

  /// The state of the encoder.
  private enum Phase: Int {
    case resting, opening, ready, failed, closed
  }

  /// The track of the pictures. It is none of ``Pipeline/tracks``.
  let track: Track
  /// The failures of the encoder, and their ends, for the terminal.
  let events = EventQueue<RenditionEvent>()
  private let plan: H264Plan
  private let requests: EncoderRequests
  private let sourceSize: PictureSize
  private let keyFrameInterval: Duration
  /// The processors of the camera's threads; nil where the kernel does not tell.
  private let processors = ProcessorSet.ofThread()
  private let reducer = FrameReducer(capacity: 3, copiesUnchanged: true)
  private let phase = Atomic(Phase.resting.rawValue)
  /// The stream's bits a second, and `true` if the pictures are half as wide and high.
  private let bitrate: Atomic<Int>
  private let isHalf = Atomic(false)
  private let figures = Mutex(RenditionStatistics())
  /// Returns the processors that the program may still use.
  private let room = Mutex<@Sendable () -> Double>({ .infinity })

  private let monitor = Monitor()
  // Under the monitor.
  private var slot: Frame?
  private var isWatched = false
  /// The time until which the encoder is kept without a viewer.
  private var keptUntil = Instant.zero
  /// The time of the next attempt after a failure.
  private var retry = Instant.zero
  private var color: ColorDescription
  /// The size to which the stream's pictures are restricted, of those that are not rotated.
  private var limit: PictureSize
  /// The size of the pictures, of those that are not rotated.
  private var target: PictureSize
  /// `true` if the encoder has another color or size than it should, and is to be made anew.
  private var isStale = false
  /// The threads that have begun and not ended: mostly one.
  private var threads = 0

  /// The time for which the encoder is kept after its last viewer.
  static let restTime = Duration.seconds(10)
  /// The pause after an encoder has failed, or could not be opened.
  static let retryTime = Duration.seconds(60)
  /// The longest wait for the end of an encoder.
  static let endPatience = Duration.seconds(2)
  /// The number of frames in a row that may fail.
  private static let failureLimit = 30

  /// Creates a rendition that rests.
  ///
  /// - Parameters:
  ///   - requests: the requests of the track's viewers.
  ///   - sourceSize: the size of the source's frames.
  init(
    _ plan: H264Plan, track: Track, requests: EncoderRequests, sourceSize: PictureSize, keyFrameInterval: Duration
  ) {
    (self.plan, self.track, self.requests) = (plan, track, requests)
    (self.sourceSize, self.keyFrameInterval) = (sourceSize, keyFrameInterval)
    bitrate = Atomic(plan.configuration.bitrate)
    (color, limit, target) = (plan.configuration.color, sourceSize, sourceSize)
    requests.noteBitrate(plan.configuration.bitrate)
  }

  private func move(to phase: Phase) { self.phase.store(phase.rawValue, ordering: .releasing) }

  private var present: Phase { Phase(rawValue: phase.load(ordering: .acquiring)) ?? .closed }

  // MARK: Any thread

  /// The figures so far; nil if there was no encoder yet, and none has failed.
  var statistics: RenditionStatistics? {
    var statistics = figures.withLock { $0 }
    guard statistics.openings > 0 || statistics.failure != nil else { return nil }
    statistics.size = monitor.locked { target }
    statistics.isRunning = present == .ready
    return statistics
  }

  /// The parameter sets of the next pictures, as far as they are known; nil where there is no encoder.
  var parameterSets: ParameterSets? { track.sendStage.parameterSets?.sets }

  /// Sets the closure that returns the processors that the program may still use.
  func setRoom(_ room: @escaping @Sendable () -> Double) { self.room.withLock { $0 = room } }

  /// The reason why a viewer that came now would get nothing; nil where it would get pictures.
  var refusal: H264Refusal? {
    if let obstacle = plan.obstacle { return .noEncoder(obstacle) }
    let (isAtWork, isWaiting, limit) = monitor.locked {
      (present == .opening || present == .ready, present != .closed && Instant.now() < retry, self.limit)
    }
    guard !isAtWork else { return nil }
    if isWaiting, let failure = figures.withLock({ $0.failure }) { return .failed(failure) }
    let (room, rate) = (presentRoom, plan.configuration.frameRate)
    guard H264Plan.size(of: limit, at: rate, room: room) == nil else { return nil }
    let least = min(SmallRendition.size(of: limit).width, SmallRendition.size(of: limit).height)
    let size = least >= SmallRendition.leastLength ? SmallRendition.size(of: limit) : limit
    return .processors(size: size, needed: H264Plan.processors(for: size, at: rate), room: room)
  }

  private var presentRoom: Double {
    // Outside the lock: the closure takes others.
    let room = self.room.withLock { $0 }
    return room()
  }

  /// Notes that the track has viewers or none. The first one has the encoder made.
  func setWatched(_ isWatched: Bool) {
    let isStarting = monitor.locked { () -> Bool in
      if self.isWatched, !isWatched {
        keptUntil = .now() + Self.restTime
        monitor.signal()
      }
      self.isWatched = isWatched
      // It rests with a viewer where the system had no thread for that one.
      guard isWatched, present == .resting else { return false }
      move(to: .opening)
      threads += 1
      return true
    }
    guard isStarting else { return }
    do throws(SystemFailure) {
      // No marks: a frame's way in a trace is that of the stream's own picture.
      try NamedThread("nj-h264") { [self] in run() }.detach()
    } catch {
      fail("no thread: \(error)")
      // Nobody would try again: the next viewer does.
      monitor.locked { if present == .failed { move(to: .resting) } }
      noteThreadEnd()
    }
  }

  /// Makes the next picture a key frame.
  func requestKeyFrame() { requests.setKeyFrame() }

  /// Follows the bitrate of the stream.
  func follow(bitrate: Int) {
    self.bitrate.store(bitrate, ordering: .relaxed)
    applyBitrate()
  }

  private func applyBitrate() {
    let full = bitrate.load(ordering: .relaxed)
    let own = isHalf.load(ordering: .relaxed) ? SmallRendition.bitrate(of: full) : full
    track.sendStage.bitrate.store(own, ordering: .relaxed)
    requests.setBitrate(own)
  }

  /// Follows the color description of the stream.
  func follow(color: ColorDescription) {
    monitor.locked {
      guard self.color != color else { return }
      (self.color, isStale) = (color, true)
      monitor.signal()
    }
  }

  /// Follows the size to which the stream's pictures are restricted.
  func follow(size: PictureSize) {
    monitor.locked {
      guard limit != size else { return }
      (limit, isStale) = (size, true)
      monitor.signal()
    }
  }

  /// Ends the encoder and the track for good.
  func close() {
    monitor.locked {
      move(to: .closed)
      slot = nil
      monitor.signal()
    }
    track.close()
  }

  /// Waits until the encoder has ended after ``close()``, but no longer than ``endPatience``.
  func waitUntilEnd() {
    track.waitUntilEnd()
    let deadline = Instant.now() + Self.endPatience
    monitor.locked {
      while threads > 0, monitor.wait(until: deadline) {}
    }
  }

  // MARK: The encode stage

  /// Copies or scales a frame for the encoder, where there is one. The frame replaces one that still waits.
  func offer(_ frame: borrowing Frame) {
    guard phase.load(ordering: .acquiring) == Phase.ready.rawValue, frame.coded == nil else { return }
    let size = frame.rotatedSize
    let target = monitor.locked { self.target }
    let wanted = size == sourceSize ? target : PictureSize(width: target.height, height: target.width)
    let copy: Frame
    do throws(EncoderError) {
      copy = try reducer.reduce(frame, to: wanted)
    } catch {
      return figures.withLock { $0.dropped += 1 }
    }
    guard put(copy) else { return }
    figures.withLock { $0.dropped += 1 }
  }

  /// Puts a frame into the slot. Returns `true` if this frame, or the one there, is lost.
  private func put(_ frame: consuming Frame) -> Bool {
    var incoming: Frame? = consume frame
    let displaced = monitor.locked { () -> Frame? in
      guard present == .ready else { return incoming.take() }
      let displaced = slot.take()
      slot = incoming.take()
      return displaced
    }
    monitor.signal()
    return displaced != nil
  }

  // MARK: The thread

  private func noteThreadEnd() {
    monitor.locked {
      threads -= 1
      monitor.signal()
    }
  }

  private func run() {
    // The thread that starts this one may be a server's.
    guard let processors else { return work() }
    processors.confining { work() }
  }

  private func work() {
    defer { noteThreadEnd() }
    // What an encoder used that is made anew counts as used for some seconds more.
    var own = 0.0
    while isNeeded() {
      do {
        let encoder = try open(freeing: own)
        defer { encoder.stop() }
        try encode(by: encoder)
        own = H264Plan.processors(for: encoder.configuration.size, at: plan.configuration.frameRate)
      } catch {
        own = 0
        fail("\(error)")
        waitToRetry()
      }
      // Without the encoder, its frames need no memory.
      reducer.removeAll()
    }
  }

  /// Returns `true` if there is to be an encoder; else the rendition rests, unless it has ended.
  private func isNeeded() -> Bool {
    monitor.locked {
      guard present != .closed else { return false }
      let isNeeded = isWatched || Instant.now() < keptUntil
      move(to: isNeeded ? .opening : .resting)
      return isNeeded
    }
  }

  /// Makes the encoder, and what it needs: in the full size where the program may use as many processors, else in half of it.
  ///
  /// - Parameter own: the processors that the encoder before this one has used.
  private func open(freeing own: Double) throws -> any VideoEncoder {
    let (color, limit) = monitor.locked {
      isStale = false
      return (self.color, self.limit)
    }
    var configuration = plan.configuration
    // Where the room has shrunk since the viewer came, the smaller pictures are the best that there is.
    let size =
      H264Plan.size(of: limit, at: configuration.frameRate, room: presentRoom + own) ?? SmallRendition.size(of: limit)
    let turns = configuration.size != sourceSize
    (configuration.size, configuration.color) = (
      turns ? PictureSize(width: size.height, height: size.width) : size, color
    )
    try reducer.prepare(from: sourceSize, to: size)
    isHalf.store(size != limit, ordering: .relaxed)
    configuration.bitrate = size == limit ? configuration.bitrate : SmallRendition.bitrate(of: configuration.bitrate)
    let encoder = try plan.makeEncoder(configuration)
    do throws(EncoderError) {
      try encoder.prepare()
    } catch {
      encoder.stop()
      throw error
    }
    monitor.locked { target = size }
    return encoder
  }

  /// Encodes frames until the encoder is needed no longer, or is to be made anew.
  private func encode(by encoder: any VideoEncoder) throws {
    // Another one than that of the track's consumers: the former thread may still give its room back.
    let writer = CodedPictureWriter(track.pictures)
    defer { writer.rest() }
    let sink = SmallSink(writer)
    var rate = MeasuredFrameRate(nominal: plan.configuration.frameRate)
    var clock = KeyFrameClock(interval: keyFrameInterval)
    var failures = 0
    guard begin(encoder.name) else { return }
    while writer.reserve(), let frame = next() {
      let timestamp = frame.timestamp
      if requests.takeKeyFrame() { clock.request() }
      do throws(EncoderError) {
        try follow(rate.change(at: timestamp), encoder)
        let isDue = clock.isDue(at: timestamp, frameInterval: encoder.configuration.frameRate.interval)
        try encoder.encode(frame, keyFrame: isDue, to: sink)
        if isDue { clock.keyFrameDelivered(at: timestamp) }
        failures = 0
        figures.withLock {
          $0.frames += sink.frames
          $0.bytes += sink.bytes
        }
        if sink.isLosing { clock.request() }
        (sink.frames, sink.bytes, sink.isLosing) = (0, 0, false)
      } catch {
        figures.withLock { $0.dropped += 1 }
        failures += 1
        if case .lost = error { throw error }
        guard failures < Self.failureLimit else { throw error }
        // The pictures after a missing one cannot be decoded.
        clock.request()
      }
    }
  }

  /// Lets the encode stage offer frames. Returns `false` where the stream has ended.
  private func begin(_ name: String) -> Bool {
    let hadFailed = figures.withLock { figures -> Bool in
      defer { (figures.encoderName, figures.failure) = (name, nil) }
      figures.openings += 1
      return figures.failure != nil
    }
    if hadFailed { events.add(.h264Recovered(encoder: name)) }
    applyBitrate()
    return monitor.locked {
      guard present == .opening else { return false }
      move(to: .ready)
      return true
    }
  }

  /// Waits for the next frame; nil if the encoder is needed no longer, or is to be made anew.
  private func next() -> Frame? {
    monitor.locked { () -> Frame? in
      while true {
        guard present == .ready else { return nil }
        guard !isStale, isWatched || Instant.now() < keptUntil else {
          slot = nil
          move(to: .opening)
          return nil
        }
        if slot != nil { return slot.take() }
        // Once a second: nobody wakes the thread at the end of the rest.
        _ = monitor.wait(until: .now() + .seconds(1))
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

  private func fail(_ reason: String) {
    monitor.locked {
      slot = nil
      guard present != .closed else { return }
      retry = .now() + Self.retryTime
      figures.withLock { ($0.failure, $0.failures) = (reason, $0.failures + 1) }
      move(to: .failed)
      events.add(.h264Failed(reason: reason, retry: Self.retryTime))
    }
  }

  /// Waits until the encoder is to be tried again, or needed no longer.
  private func waitToRetry() {
    monitor.locked {
      while present == .failed, Instant.now() < retry, isWatched || Instant.now() < keptUntil {
        _ = monitor.wait(until: .now() + .seconds(1))
      }
    }
  }
}
