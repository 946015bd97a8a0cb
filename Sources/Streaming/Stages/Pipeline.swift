package import Detection
import Encoding
package import Media
package import Platform
import RTP
package import Sound
import Synchronization

/// One camera's way to its viewers: capture, encode and send, on a thread each, and sound on another. A stream has one
/// or several tracks (``Track``), of which the first is that of the pictures. There is no global state, so that one
/// process may run several pipelines.
package final class Pipeline: @unchecked Sendable {
  // Sendable: mutable state is either under a mutex or touched in `start` and `waitUntilEnd` alone, which the one owner
  // calls one after the other.

  /// The way in which a pipeline ended.
  package enum Outcome: Sendable {
    /// The pipeline was stopped.
    case stopped
    /// The source had no more pictures.
    case sourceEnded
    /// The source or the encoder failed for good.
    case failed(any Error)
  }

  /// Makes the encoder of a rendition, in a configuration that follows from that of the stream's encoder. The frames come in any
  /// orientation.
  package typealias MakeRenditionEncoder = @Sendable (EncoderConfiguration) throws -> any VideoEncoder

  /// The encoder.
  package let encoder: any VideoEncoder
  /// The format that the source delivers.
  package let sourceFormat: SourceFormat
  /// Becomes readable once the pipeline has ended on its own or by ``stop()``.
  package let ended: Interrupt

  let source: any VideoSource
  private let keyFrameInterval: Duration
  private let interrupt: Interrupt
  /// The small rendition of the pictures; nil where the stream has none.
  let small: SmallRendition?
  /// The pictures in H.264 for viewers that cannot decode the stream's own codec; nil where the stream has none.
  let h264: H264Rendition?
  let requests = EncoderRequests()
  private let mailbox: Mailbox<WaitingFrame>
  let statisticsRecorder: StatisticsRecorder
  /// The tracks of the stream: that of the pictures, and the further ones.
  package let tracks: [Track]
  /// The sound of the stream, whose track is the last one; nil for a stream without sound.
  package let sound: SoundStage?
  /// The send stage of the pictures.
  let sendStage: SendStage
  let pictureStage: PictureStage
  /// Looks for movement and darkness in the pictures.
  package let detection: PictureDetection
  let viewerList = Mutex(ViewerList())
  let restsUnwatched: Bool
  private let rotation: PictureRotation
  let thinning = FrameThinning()
  let reducer = FrameReducer()
  let rates: Mutex<Rates>
  /// The encoder's configuration at the start, before any restriction. Any thread may read it, unlike the encoder's.
  package let originalConfiguration: EncoderConfiguration
  private let outcome = Mutex<Outcome?>(nil)
  let end = Mutex<Instant?>(nil)
  private var threads: Threads?
  private let trace: CameraTrace
  private let realTime: RealTimePriority
  private let isPunctual: Bool
  /// The way in which packets are made and leave.
  let sending: PacketSending
  private let notedThreads = ThreadNotes()

  /// The requested rates, and the part of them that is left.
  struct Rates {
    var bitrate: Int
    var restrictions = StreamRestrictions()
    /// The effort that a governor has chosen; restrictions override it.
    var effort: EncodingEffort?
    /// The quality level of hardware that a governor has chosen.
    var vaapiQuality: Int?
    /// The number of x264's sliced threads that a trial requests; nil for that of the configuration.
    var threads: Int?
    /// The color description of the samples, where it differs from the encoder's original one.
    var color: ColorDescription?

    /// The differences from the encoder's original configuration.
    var encoder: EncoderRestrictions {
      var encoder = restrictions.encoder
      encoder.color = color
      encoder.effort = encoder.effort ?? effort
      (encoder.vaapiQuality, encoder.threads) = (vaapiQuality, threads)
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
  }

  /// Connects a source with an encoder that was prepared for its format, and opens the destinations' sockets.
  ///
  /// - Parameters:
  ///   - furtherTracks: the tracks beside that of the pictures, whose access units the owner of each one's encoder puts
  ///     into ``Track``.
  ///   - orientation: the orientation of pictures at the start. The encoder is one for pictures of this orientation.
  ///   - pacing: the part of a frame interval over which the packets of a large frame are spread, 0…1; 0 sends them at
  ///     once. The first frame after an orientation switch or a fail-over is never spread.
  ///   - sound: the source of the stream's sound, and its settings; nil for none.
  ///   - restsUnwatched: `true` lets the encoder rest while nobody takes the pictures; listeners do not count.
  ///   - sending: the way in which packets are made and leave.
  ///   - trace: the camera that probes and the trace file name with each frame.
  ///   - realTime: the use of real-time priority by capture and send.
  ///   - isPunctual: `true` wakes the threads with a precision of 1 ns, `false` with the kernel's usual one.
  ///   - started: the time at which the program began, the base of ``StreamStatistics/firstPacket``.
  ///   - movement: the settings of the detector of movement; nil for none.
  ///   - smallEncoder: makes the encoder of a small rendition for weak networks; nil for a stream without one.
  ///   - plan: the H.264 for viewers that cannot decode the codec of the encoder; nil for none.
  /// - Throws: ``StreamDestinationError``, ``FramePoolError``, ``SystemFailure``.
  package init(
    source: any VideoSource, encoder: any VideoEncoder, destinations: [StreamDestination],
    furtherTracks: [TrackFormat] = [], sound: (source: any SoundSource, settings: SoundSettings)? = nil,
    keyFrameInterval: Duration, orientation: Orientation = .upright,
    pacing: Double = 0, restsUnwatched: Bool = false, sending: PacketSending = PacketSending(),
    trace: CameraTrace = CameraTrace(), realTime: RealTimePriority = .auto, isPunctual: Bool = true,
    started: Instant = .now(), movement: MovementDetector.Settings? = nil, smallEncoder: MakeRenditionEncoder? = nil,
    h264 plan: H264Plan? = nil
  ) throws {
    detection = PictureDetection(movement)
    rotation = PictureRotation(source, orientation)
    self.trace = trace
    (self.realTime, self.isPunctual) = (realTime, isPunctual)
    self.sending = sending
    self.source = source
    self.encoder = encoder
    self.keyFrameInterval = keyFrameInterval
    sourceFormat = source.format
    originalConfiguration = encoder.configuration
    rates = Mutex(Rates(bitrate: encoder.configuration.bitrate))
    requests.noteBitrate(encoder.configuration.bitrate)
    interrupt = try Interrupt()
    ended = try Interrupt()
    statisticsRecorder = StatisticsRecorder(encoderName: encoder.name, started: started)
    let interval = encoder.configuration.frameRate.interval
    // The wait for a consumer must not delay the next frame.
    mailbox = Mailbox(patience: Duration(nanoseconds: min(10_000_000, interval.nanoseconds / 2)))
    let canonicalName = Self.canonicalName()
    // Noise at the finest quantizer has made 2.55 bytes a pixel. Unneeded memory is never touched.
    let pictures = TrackFormat(
      payload: .pictures(encoder.parameterSets.codec), bitrate: encoder.configuration.bitrate, interval: interval,
      groupInterval: keyFrameInterval, unitBytes: source.format.size.pixels * 3 + 65_536,
      parameterSets: encoder.parameterSets,
      profile: encoder.configuration.profile)
    let muxedSound = try sound.map { _ in try MuxedSound() }
    let first = try Track(
      0, pictures, sound: muxedSound?.units, pacing: min(max(pacing, 0), 1), canonicalName: canonicalName,
      requests: requests, statistics: statisticsRecorder, sending: sending)
    let further = furtherTracks + (sound.map { [SoundStage.trackFormat($0.settings)] } ?? [])
    tracks = try [first] + Track.further(further, canonicalName: canonicalName, started: started, sending)
    if let muxedSound { tracks[tracks.count - 1].consumers.add(muxedSound) }
    h264 = try plan.map { [tracks] in
      try H264Rendition(
        $0, number: tracks.count, sourceSize: source.format.size, keyFrameInterval: keyFrameInterval,
        pacing: min(max(pacing, 0), 1), canonicalName: canonicalName, started: started, sending)
    }
    self.sound = sound.map { [tracks] in
      SoundStage($0.source, $0.settings, track: tracks[tracks.count - 1], muxed: muxedSound)
    }
    sendStage = first.sendStage
    let configuration = encoder.configuration
    small = smallEncoder.flatMap { [sendStage] in
      SmallRendition(
        of: configuration, sourceSize: source.format.size, keyFrameInterval: keyFrameInterval,
        heldLimit: sendStage.heldLimit, beside: sendStage.pictures, makeEncoder: $0)
    }
    sendStage.small = small
    pictureStage = PictureStage(size: source.format.size)
    source.keepCompressed(while: pictureStage.demand)
    self.restsUnwatched = restsUnwatched
    for destination in destinations { try add(destination) }
    requests.setWanted(!restsUnwatched || !destinations.isEmpty)
  }

  /// Starts the threads: one for capture, one for encoding, one for each track's packets, and one for sound.
  ///
  /// - Throws: ``SystemFailure`` where the system has no thread left; then nothing runs.
  package func start() throws {
    precondition(threads == nil, "a pipeline is started once")
    // From the last stage to the first, so that each stage finds the next one ready. Where a thread cannot be started,
    // the queues that the others wait for are closed before the threads go out of scope, because that waits for their
    // ends.
    do {
      for track in tracks { try start(track) }
      if let h264 { try start(h264.track) }
      try sound?.start(realTime)
      let encode = try startEncoding(encoder)
      do {
        let capture = try startCapturing(source)
        threads = Threads(capture: capture, encode: encode)
      } catch {
        mailbox.close()
        throw error
      }
    } catch {
      closeTracks()
      sound?.waitUntilEnd()
      for track in tracks { track.waitUntilEnd() }
      h264?.waitUntilEnd()
      throw error
    }
  }

  private func start(_ track: Track) throws(SystemFailure) {
    try track.start { body throws(SystemFailure) in
      // Traces and scheduling are told of a frame's way, which is that of the first track.
      guard track.number > 0 else { return try thread("nj-send", .realTime(realTime), body) }
      let name = track === h264?.track ? "nj-send-h264" : "nj-send-\(track.number)"
      return try NamedThread(name, urgency: .realTime(realTime), isPunctual: isPunctual, body)
    }
  }

  /// Ends the tracks after the access units that they have: no more of them come.
  private func closeTracks() {
    for track in tracks { track.close() }
    small?.close()
    h264?.close()
  }

  /// Starts a thread of the frame path.
  private func thread(
    _ name: String, _ urgency: NamedThread.Urgency, _ body: @escaping @Sendable () -> Void
  ) throws(SystemFailure) -> NamedThread {
    try NamedThread(name, urgency: urgency, isPunctual: isPunctual) { [notedThreads, trace] in
      notedThreads.note(name)
      trace.follow(thread: name, body)
    }
  }

  /// The scheduling of the threads that frames pass through, in that order, at the time when the threads began.
  package var threadScheduling: [(name: String, scheduling: ThreadScheduling)] {
    notedThreads.noted.withLock { noted in
      ["nj-capture", "nj-encode", "nj-send"].compactMap { name in noted[name].map { (name, $0) } }
    }
  }

  private func startEncoding<Encoder: VideoEncoder>(_ encoder: Encoder) throws(SystemFailure) -> NamedThread {
    let stage = EncodeStage(
      encoder: encoder, keyFrameInterval: keyFrameInterval, mailbox: mailbox, consumers: tracks[0].consumers,
      statistics: statisticsRecorder, requests: requests, reducer: reducer, rotation: rotation,
      pictureStage: pictureStage, small: small, h264: h264)
    return try thread("nj-encode", .punctual) { [self] in
      do throws(EncoderError) {
        try stage.run()
      } catch {
        finish(.failed(error))
        // The capture thread would fill the mailbox in vain.
        interrupt.fire()
        mailbox.close()
      }
      // The stage has closed the first one.
      closeTracks()
    }
  }

  private func startCapturing<Source: VideoSource>(_ source: Source) throws(SystemFailure) -> NamedThread {
    let stage = CaptureStage(
      source: source, mailbox: mailbox, statistics: statisticsRecorder, thinning: thinning, detection: detection)
    return try thread("nj-capture", .realTime(realTime)) { [self] in
      do {
        try stage.run(interrupt: interrupt)
        finish(interrupt.hasFired() ? .stopped : .sourceEnded)
      } catch {
        finish(.failed(error))
      }
    }
  }

  /// Requests the pipeline's end: it takes no new picture and sends those on the way. Any thread, any number of times.
  package func stop() {
    interrupt.fire()
    sound?.stop()
    pictureStage.close()
  }

  /// Waits until every thread has ended, and returns how the pipeline ended. Once ``ended`` is readable, the wait takes no longer than
  /// the pictures on the way need, and two seconds where the driver of a sound card, or of the small rendition's encoder, hangs.
  package func waitUntilEnd() -> Outcome {
    threads = nil
    // A pipeline that was never started has no stage that would have done it.
    closeTracks()
    sound?.waitUntilEnd()
    for track in tracks { track.waitUntilEnd() }
    small?.thread.waitUntilEnd()
    h264?.waitUntilEnd()
    pictureStage.close()
    // Announced sessions are over.
    viewerList.withLock { $0.announcer.take() }?.end()
    end.withLock { if $0 == nil { $0 = .now() } }
    return outcome.withLock { $0 } ?? .stopped
  }

  /// This side's CNAME in RTCP.
  package var canonicalName: String { sendStage.canonicalName }

  /// Makes the next frame a key frame.
  package func requestKeyFrame() {
    requests.setKeyFrame()
    h264?.requestKeyFrame()
  }

  /// Puts the parameter sets before the next picture, of whatever kind. Every key frame has them anyway. For a receiver
  /// that has joined and has not got them otherwise.
  package func repeatParameterSets() {
    sendStage.repeatParameterSets()
  }

  /// The frame rate in frames a second that the encoder assumes. Any thread may read it, unlike the encoder's.
  package var frameRate: FrameRate {
    statisticsRecorder.encode.withLock { $0.frameRate } ?? originalConfiguration.frameRate
  }

  /// Sets the orientation of the next picture and those after it. With an encoder of one aspect alone, only half rotations
  /// and mirrors may follow. Any thread may call it, at any time.
  package func orient(_ orientation: Orientation) {
    rotation.orient(orientation)
  }

  /// Sets the orientation like ``orient(_:)``, and waits. It returns once a picture with that orientation was encoded,
  /// another one was requested, or the pipeline has ended; or after `patience`, with too few pictures to tell.
  ///
  /// - Throws: ``RotationRefusal`` where source or encoder cannot; the stream goes on as before.
  package func rotate(
    to orientation: Orientation, patience: Duration = Duration(seconds: 3)
  ) async throws(RotationRefusal) {
    rotation.orient(orientation)
    try await rotation.settle(orientation, by: .now() + patience)
  }

  /// The orientation of pictures: by the last ``orient(_:)``, or the former one where that cannot be done.
  package var orientation: Orientation { rotation.orientation }

  /// The reason why pictures do not have the orientation of the last request; nil where they have it, or where no
  /// picture has come since.
  package var rotationRefusal: RotationRefusal? { rotation.refusal }

  /// Notes the end. The first outcome counts: what follows a failure is its consequence.
  private func finish(_ result: Outcome) {
    outcome.withLock { if $0 == nil { $0 = result } }
    pictureStage.close()
    ended.fire()
    rotation.end()
  }
}
