import Encoding
public import FrameTracing
public import Media
import RTP
import Synchronization
public import Threading

/// One camera's way to its viewers: capture, encode, send, a thread each. A value of its own without global state,
/// so that one process may run several.
public final class Pipeline: @unchecked Sendable {
  // Sendable: what is mutable is either under a mutex or touched in `start` and `waitUntilEnd` alone, which the one
  // owner calls one after the other.

  /// How a pipeline ended.
  public enum Outcome: Sendable {
    /// It was stopped.
    case stopped
    /// The source had no more pictures.
    case sourceEnded
    /// The source or the encoder failed for good.
    case failed(any Error)
  }

  /// The encoder.
  public let encoder: any VideoEncoder
  /// What the source delivers.
  public let sourceFormat: SourceFormat
  /// Becomes readable once the pipeline has ended by itself or by ``stop()``.
  public let ended: Interrupt

  private let source: any VideoSource
  private let keyFrameInterval: MediaTime
  private let interrupt: Interrupt
  let requests = EncoderRequests()
  private let mailbox: Mailbox<WaitingFrame>
  let pictures: CodedPictureQueue
  let statisticsRecorder: StatisticsRecorder
  let sendStage: SendStage
  let pictureStage: PictureStage
  let viewerList = Mutex(ViewerList())
  let restsUnwatched: Bool
  private let turn: PictureTurn
  private let thinning = FrameThinning()
  private let reducer = FrameReducer()
  private let rates: Mutex<Rates>
  private let nominalRate: FrameRate
  private let outcome = Mutex<Outcome?>(nil)
  private let end = Mutex<MediaTime?>(nil)
  private var threads: Threads?
  private let trace: CameraTrace
  private let realTime: RealTimePriority
  /// What it does without, for comparison.
  public let without: Set<Optimization>
  private let notedThreads = ThreadNotes()

  /// What was asked for, and what is left of it.
  private struct Rates {
    var bitrate: Int
    var restrictions = StreamRestrictions()
    /// What the samples mean, where that is not what the encoder was made for.
    var color: ColorDescription?

    /// What the encoder is to do otherwise than it was made for.
    var encoder: EncoderRestrictions {
      var encoder = restrictions.encoder
      encoder.color = color
      return encoder
    }

    /// Bits a second.
    var effective: Int {
      let limits = EncoderConfiguration.bitrateLimits
      return min(max(Int(Double(bitrate) * restrictions.bitrateShare), limits.lowerBound), limits.upperBound)
    }
  }

  private struct Threads: ~Copyable {
    let capture: NamedThread
    let encode: NamedThread
    let send: NamedThread
  }

  /// Joins a source and an encoder that was prepared for its format; opens the destinations' sockets.
  ///
  /// - Parameters:
  ///   - orientation: how pictures are laid at the start; the encoder is one for pictures laid so.
  ///   - pacing: the part of a frame interval over which the packets of a large frame are spread, 0…1; 0 sends them at
  ///     once. The first frame after an orientation switch or a fail-over is never spread.
  ///   - restsUnwatched: whether the encoder rests while there is no destination.
  ///   - without: What it is to do without, for comparison.
  ///   - trace: Whose frames they are in probes and in a file of them.
  ///   - realTime: Whether capture and send take real-time priority.
  ///   - started: when the program began, the base of ``StreamStatistics/firstPacket``.
  /// - Throws: ``StreamDestinationError``, ``FramePoolError``, ``SystemFailure``.
  public init(
    source: any VideoSource, encoder: any VideoEncoder, destinations: [StreamDestination],
    keyFrameInterval: MediaTime, orientation: Orientation = .upright, pacing: Double = 0,
    restsUnwatched: Bool = false, without: Set<Optimization> = [], trace: CameraTrace = CameraTrace(),
    realTime: RealTimePriority = .auto,
    started: MediaTime = .now()
  ) throws {
    turn = PictureTurn(source, orientation)
    self.trace = trace
    self.realTime = without.contains(.rtprio) ? .off : realTime
    self.without = without
    self.source = source
    self.encoder = encoder
    self.keyFrameInterval = keyFrameInterval
    sourceFormat = source.format
    nominalRate = encoder.configuration.frameRate
    rates = Mutex(Rates(bitrate: encoder.configuration.bitrate))
    interrupt = try Interrupt()
    ended = try Interrupt()
    statisticsRecorder = StatisticsRecorder(encoderName: encoder.name, started: started)
    // As many as come within a viewer's patience.
    let interval = encoder.configuration.frameRate.interval
    // The frame after that must not wait for it.
    mailbox = Mailbox(patience: MediaTime(nanoseconds: min(10_000_000, interval.nanoseconds / 2)))
    let held = min(max(Int(Viewer.patience.seconds / interval.seconds), 8), 32)
    // Noise at the finest quantizer has made 2.55 bytes a pixel; what is not needed is never touched.
    pictures = try CodedPictureQueue(capacity: source.format.size.pixels * 3 + 65_536, held: held)
    sendStage = try SendStage(
      pictures: pictures, heldLimit: held, encoder: encoder.configuration, parameterSets: encoder.parameterSets,
      pacing: min(max(pacing, 0), 1), canonicalName: Self.canonicalName(), requests: requests,
      statistics: statisticsRecorder, without: without)
    pictureStage = PictureStage(size: source.format.size)
    source.keepCompressed(while: pictureStage.demand)
    self.restsUnwatched = restsUnwatched
    for destination in destinations { try add(destination) }
    requests.setWanted(!restsUnwatched || !destinations.isEmpty)
  }

  /// Starts the three threads.
  ///
  /// - Throws: ``SystemFailure`` where the system has no thread left; then nothing runs.
  public func start() throws {
    precondition(threads == nil, "a pipeline is started once")
    // From the end to the beginning, so that each stage finds the next one ready. Where one cannot be started, what the
    // others wait for is closed before they go out of scope, because that waits for their ends.
    let send = try thread("nj-send", .realTime(realTime)) { [sendStage] in sendStage.run() }
    do {
      let encode = try startEncoding(encoder)
      do {
        let capture = try startCapturing(source)
        threads = Threads(capture: capture, encode: encode, send: send)
      } catch {
        mailbox.close()
        throw error
      }
    } catch {
      pictures.close()
      throw error
    }
  }

  /// A thread of the frame path.
  private func thread(
    _ name: String, _ urgency: NamedThread.Urgency, _ body: @escaping @Sendable () -> Void
  ) throws(SystemFailure) -> NamedThread {
    let isPunctual = !without.contains(.timerslack)
    return try NamedThread(name, urgency: urgency, isPunctual: isPunctual) { [notedThreads, trace] in
      notedThreads.note(name)
      trace.follow(thread: name, body)
    }
  }

  /// How the kernel schedules the threads that frames pass through, in that order, as it was when they began.
  public var threadScheduling: [(name: String, scheduling: ThreadScheduling)] {
    notedThreads.noted.withLock { noted in
      ["nj-capture", "nj-encode", "nj-send"].compactMap { name in noted[name].map { (name, $0) } }
    }
  }

  private func startEncoding<Encoder: VideoEncoder>(_ encoder: Encoder) throws(SystemFailure) -> NamedThread {
    let stage = EncodeStage(
      encoder: encoder, keyFrameInterval: keyFrameInterval, mailbox: mailbox, pictures: pictures,
      statistics: statisticsRecorder, requests: requests, reducer: reducer, turn: turn, pictureStage: pictureStage)
    return try thread("nj-encode", .punctual) { [self] in
      do throws(EncoderError) {
        try stage.run()
      } catch {
        finish(.failed(error))
        // The capture thread would fill the mailbox for nobody.
        interrupt.fire()
        mailbox.close()
      }
    }
  }

  private func startCapturing<Source: VideoSource>(_ source: Source) throws(SystemFailure) -> NamedThread {
    let stage = CaptureStage(
      source: source, mailbox: mailbox, statistics: statisticsRecorder, thinning: thinning)
    return try thread("nj-capture", .realTime(realTime)) { [self] in
      do {
        try stage.run(interrupt: interrupt)
        finish(interrupt.hasFired() ? .stopped : .sourceEnded)
      } catch {
        finish(.failed(error))
      }
    }
  }

  /// Asks the pipeline to end: no new picture is taken, those on the way are sent. Any thread, any number of times.
  public func stop() {
    interrupt.fire()
    pictureStage.close()
  }

  /// Waits until every thread has ended, and says how the pipeline ended. Once ``ended`` is readable this takes no
  /// longer than the pictures on the way need.
  public func waitUntilEnd() -> Outcome {
    threads = nil
    pictureStage.close()
    // What was announced is over.
    viewerList.withLock { $0.announcer.take() }?.end()
    end.withLock { if $0 == nil { $0 = .now() } }
    return outcome.withLock { $0 } ?? .stopped
  }

  /// Makes the next frame a key frame.
  public func requestKeyFrame() {
    requests.setKeyFrame()
  }

  /// Puts the parameter sets before the next picture, whatever kind it is; every key frame has them anyway. For a
  /// receiver that has joined and has not got them otherwise.
  public func repeatParameterSets() {
    sendStage.repeatParameterSets()
  }

  /// Frames a second as the encoder takes them to come. Any thread may ask, unlike the encoder.
  public var frameRate: FrameRate { statisticsRecorder.encode.withLock { $0.frameRate } ?? nominalRate }

  /// From the next frame on lays pictures so. With an encoder of one aspect alone, only half turns and mirrors may follow.
  /// Any thread, at any time.
  public func orient(_ orientation: Orientation) {
    turn.orient(orientation)
  }

  /// As ``orient(_:)``; returns once a picture that is laid so was encoded, something else was asked for, the pipeline
  /// has ended, or after `patience` with too few pictures to tell.
  ///
  /// - Throws: ``TurnRefusal`` where source or encoder cannot; the stream goes on as before.
  public func turn(
    to orientation: Orientation, patience: MediaTime = MediaTime(seconds: 3)
  ) async throws(TurnRefusal) {
    turn.orient(orientation)
    let deadline = MediaTime.now() + patience
    while MediaTime.now() < deadline, !ended.hasFired() {
      if let refusal = turn.refusal, refusal.wanted == orientation { throw refusal }
      if turn.hasSettled(orientation) { return }
      do { try await Task.sleep(nanoseconds: 2_000_000) } catch { return }
    }
  }

  /// How pictures are laid: by the last ``orient(_:)``, or as before where that cannot be done.
  public var orientation: Orientation { turn.orientation }

  /// Why they are not laid as was asked last; nil where they are, or where no picture has come since.
  public var turnRefusal: TurnRefusal? { turn.refusal }

  /// Bits a second that the encoder aims at: as of the last ``changeBitrate(_:)``, less what ``restrict(_:)`` took of it.
  /// Any thread may ask.
  public var bitrate: Int { rates.withLock { $0.effective } }

  /// From one of the next frames on `bitrate` bits a second, with neither a key frame nor new parameter sets.
  ///
  /// - Throws: ``EncoderError/configuration(_:)`` for an impossible value; then nothing changes.
  public func changeBitrate(_ bitrate: Int) throws(EncoderError) {
    try EncoderConfiguration.check(bitrate: bitrate)
    rates.withLock {
      $0.bitrate = bitrate
      apply($0)
    }
  }

  /// What the stream does with less of, by ``restrict(_:)``.
  public var restrictions: StreamRestrictions { rates.withLock { $0.restrictions } }

  /// From one of the next frames on does with less, or again with more. Another size, or a preset that a running x264
  /// does not take, is another encoder's, which is made first; the stream goes on meanwhile, and no frame is lost. Where
  /// the encoder is one of one size alone, rates change, and nothing else. Any thread but the frame path's.
  ///
  /// - Throws: ``FramePoolError`` where there is no memory to scale pictures; then nothing changes.
  public func restrict(_ restrictions: StreamRestrictions) throws {
    precondition(restrictions.bitrateShare > 0 && restrictions.bitrateShare <= 1, "a share of the bitrate")
    try reducer.prepare(from: sourceFormat.size, to: restrictions.encoder.size(of: sourceFormat.size))
    thinning.limit(to: restrictions.maximumFrameRate)
    rates.withLock {
      $0.restrictions = restrictions
      requests.setRestrictions($0.encoder)
      apply($0)
    }
  }

  /// Has the stream say what its samples mean, where that has changed: another camera may have come than the one, or none,
  /// that the stream began with. To be called now and then; the encoder is exchanged as by ``restrict(_:)``.
  public func followColor() {
    guard let color = source.condition?.color else { return }
    rates.withLock {
      let new = color == sourceFormat.color ? nil : color
      guard $0.color != new else { return }
      $0.color = new
      requests.setRestrictions($0.encoder)
    }
  }

  private func apply(_ rates: Rates) {
    requests.setBitrate(rates.effective)
    sendStage.bitrate.store(rates.effective, ordering: .relaxed)
  }

  /// What happened so far.
  public var statistics: StreamStatistics { statistics(latencies: .summaries) }

  /// What happened so far, without ``StreamStatistics/latencies``: for whoever asks often, and keeps the distributions.
  public var counts: StreamStatistics { statistics(latencies: .distributions) }

  /// What happened so far, without latencies of any kind: for whoever looks each second, and allocates little.
  public var counters: StreamStatistics { statistics(latencies: .none) }

  /// Frames that were encoded so far, and how long the encoder was at work. Allocates nothing.
  public var encoderWork: (frames: Int, busy: MediaTime) {
    statisticsRecorder.encode.withLock { ($0.frames, $0.busy) }
  }

  private func statistics(latencies: StatisticsRecorder.LatencyFigures) -> StreamStatistics {
    var statistics = statisticsRecorder.statistics(until: end.withLock { $0 } ?? .now(), latencies: latencies)
    statistics.camera = source.condition
    return statistics
  }

  /// What happened to the camera since the last call, oldest first.
  public func takeCameraEvents() -> [CameraEvent] { source.takeEvents() }

  /// The latency from capture to wire since the last call.
  public func recentLatency() -> LatencySummary {
    statisticsRecorder.recentLatency()
  }

  /// The stream's parameter sets, and how often they have changed since the start.
  public var parameterSets: (sets: ParameterSets, changes: Int) {
    sendStage.currentParameterSets.withLock { $0 }
  }

  /// The first outcome counts: what follows a failure is its consequence.
  private func finish(_ result: Outcome) {
    outcome.withLock { if $0 == nil { $0 = result } }
    pictureStage.close()
    ended.fire()
  }
}

/// What the threads of a pipeline tell of themselves.
private final class ThreadNotes: Sendable {
  let noted = Mutex<[String: ThreadScheduling]>([:])

  /// The calling thread's scheduling, under its name.
  func note(_ name: String) {
    guard let scheduling = ThreadScheduling.current() else { return }
    noted.withLock { $0[name] = scheduling }
  }
}
