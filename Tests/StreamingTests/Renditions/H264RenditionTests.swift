#if X264
  import Capture
  import Encoding
  import Foundation
  import Media
  import Platform
  import Synchronization
  import TestSupport
  import Testing

  import Streaming

  /// The processors that a test leaves to the program.
  private final class ScriptedRoom: ProcessorRoom {
    private struct State {
      var room: Double
      var grants: [ProcessorGrant] = []
    }
    private let state: Mutex<State>

    init(_ room: Double) { state = Mutex(State(room: room)) }

    var room: Double { state.withLock { $0.room } }
    /// The processors of the grants so far.
    var grants: [Double] { state.withLock { $0.grants.map(\.processors) } }

    func set(_ room: Double) { state.withLock { $0.room = room } }

    func take(inPlaceOf former: ProcessorGrant?, _ choose: (_ room: Double) -> Double) -> ProcessorGrant {
      state.withLock { state in
        let processors = choose(state.room + (former?.processors ?? 0))
        let grant = ProcessorGrant(number: state.grants.count, processors: processors)
        state.grants.append(grant)
        return grant
      }
    }
  }

  /// A rendition that never has an encoder.
  private final class UnpreparedRendition: ThreadedRendition {
    let thread: RenditionThread
    let makeEncoder: Pipeline.MakeRenditionEncoder = { _ in throw EncoderError.stopped }

    init(_ thread: RenditionThread) { self.thread = thread }

    func prepare(isAnew: Bool) throws -> (EncoderConfiguration, CodedPictureQueue) { throw EncoderError.stopped }
    func isKeyFrame(_ waiting: borrowing RenditionFrame, frameInterval: Duration) -> Bool { false }
    func isOutdated(at now: Instant) -> Bool { false }
  }

  /// H.264 beside a stream's own pictures, as ffmpeg decodes it. The stream's own codec does not matter here.
  @Suite(.serialized) struct H264RenditionTests {
    private static let size = PictureSize(width: 320, height: 240)

    /// A pipeline whose own encoder rests unwatched, with H.264 beside it.
    private final class Bench {
      let pipeline: Pipeline
      let room: ScriptedRoom

      /// - Parameters:
      ///   - room: The processors that the program may still use.
      ///   - sizePatience: The time for which the processors must suffice before half the size ends.
      ///   - change: Changes the plan.
      init(
        room: Double = .infinity, sizePatience: Duration = .seconds(30),
        make: @escaping Pipeline.MakeRenditionEncoder = { try EncoderSelector.selectSmall(.x264, $0) },
        change: (inout H264Plan) -> Void = { _ in }
      ) throws {
        let configuration = EncoderSettings().configuration(
          size: H264RenditionTests.size, frameRate: .thirty, bitrate: 900_000, color: .bt709, processors: 1)
        let selection = try EncoderSelector.select(.x264, configuration, aspects: .both)
        let sets = try EncoderSelector.softwareParameterSets(for: configuration)
        var plan = H264Plan(configuration, parameterSets: sets, makeEncoder: make)
        plan.sizePatience = sizePatience
        change(&plan)
        self.room = ScriptedRoom(room)
        pipeline = try Pipeline(
          source: try SyntheticCamera(size: H264RenditionTests.size, frameRate: .thirty), encoder: selection.encoder,
          destinations: [], keyFrameInterval: Duration(seconds: 600), restsUnwatched: true, h264: plan)
        pipeline.setProcessorRoom(self.room)
        try pipeline.start()
      }

      deinit { end() }

      func end() {
        pipeline.stop()
        _ = pipeline.waitUntilEnd()
      }

      /// Admits a viewer of H.264, or of the stream's own pictures.
      func admit(_ connection: NarrowConnection, isH264: Bool = true) throws -> ViewerID {
        let (transport, track) = (try #require(connection.transport), try #require(pipeline.h264Track))
        return try pipeline.admit(.interleaved(transport), track: isH264 ? track : 0, name: "viewer") { _ in }
      }

      func frames(_ id: ViewerID) -> Int { pipeline.statistics(of: id)?.frames ?? 0 }

      var rendition: RenditionStatistics? { pipeline.statistics.h264Rendition }
    }

    /// Expects that ffmpeg decodes every picture that came, and that none is missing within.
    private func expectWhole(_ packets: [[UInt8]], _ size: PictureSize, least: Int) throws {
      let pictures = try ReceivedPictures(packets)
      #expect(pictures.damaged == 0 && pictures.repeated == 0 && pictures.timestamps.count >= least)
      let probe = try StreamProbe(Data(pictures.stream))
      #expect(probe.frames == pictures.timestamps.count && probe.complaints.isEmpty, "\(probe.complaints)")
      #expect(probe.values["width"] == "\(size.width)" && probe.values["height"] == "\(size.height)")
      #expect(probe.values["profile"]?.contains("Baseline") == true, "\(probe.values)")
    }

    @Test func `its encoder is made at the first viewer and goes after the last, while the stream's own rests`() throws
    {
      let bench = try Bench()
      try #require(eventually { bench.pipeline.statistics.unwatched > 10 })
      #expect(bench.rendition == nil && bench.pipeline.h264Refusal == nil)
      for round in 1...2 {
        let connection = try NarrowConnection()
        let id = try bench.admit(connection)
        try #require(eventually { bench.frames(id) > 40 })
        #expect(bench.pipeline.statistics(of: id)?.getsH264 == true)
        let running = try #require(bench.rendition)
        #expect(running.isRunning && running.openings == round && running.size == Self.size, "\(running)")
        _ = bench.pipeline.remove(id)
        try expectWhole(connection.packets, Self.size, least: 40)
        try #require(eventually { bench.rendition?.isRunning == false })
        let frames = bench.rendition?.frames
        usleep(200_000)
        #expect(bench.rendition?.frames == frames)
      }
      let statistics = bench.pipeline.statistics
      #expect(statistics.encoded == 0)
      // What the network has taken is counted by rendition.
      let rendition = try #require(statistics.h264Rendition)
      #expect(statistics.sent == 0 && rendition.sent > 60 && rendition.sent <= rendition.frames, "\(rendition)")
    }

    @Test func `a viewer that returns within the rest finds the same encoder`() throws {
      let bench = try Bench()
      var left: Instant?
      // The pauses of a machine that was too busy to come back in time: after each, there may be another encoder.
      var pauses = 0
      for _ in 0..<3 {
        let connection = try NarrowConnection()
        let id = try bench.admit(connection)
        if let left, Instant.now() - left >= RenditionThread.restTime { pauses += 1 }
        try #require(eventually { bench.frames(id) > 10 })
        left = .now()
        withExtendedLifetime(connection) { _ = bench.pipeline.remove(id) }
      }
      let openings = try #require(bench.rendition?.openings)
      #expect(openings >= 1 && openings <= 1 + pauses, "\(openings) \(pauses)")
    }

    @Test func `viewers of both get every picture`() throws {
      let bench = try Bench()
      let (own, other) = (try NarrowConnection(), try NarrowConnection())
      let otherID = try bench.admit(other)
      // From here on, each frame is offered to its encoder.
      try #require(eventually { bench.frames(otherID) > 0 })
      let ownID = try bench.admit(own, isH264: false)
      try #require(eventually { bench.frames(ownID) > 60 && bench.frames(otherID) > 60 })
      bench.end()
      let statistics = bench.pipeline.statistics
      #expect(statistics.destinations.allSatisfy { $0.framesDropped == 0 && $0.lost == 0 })
      #expect(statistics.destinations.map(\.getsH264) == [true, false])
      try expectWhole(own.packets, Self.size, least: 60)
      try expectWhole(other.packets, Self.size, least: 60)
      // Each frame became a picture, or was counted, but for those on their way at the end.
      let rendition = try #require(statistics.h264Rendition)
      let sent = try #require(statistics.destinations.first).frames
      #expect(rendition.frames >= sent && statistics.encoded > 60)
      #expect(rendition.frames + rendition.dropped + 5 >= statistics.encoded, "\(rendition) \(statistics.encoded)")
    }

    @Test func `where the processors suffice for half the size, that is what comes`() throws {
      let whole = H264Plan.processors(for: Self.size, at: .thirty)
      let bench = try Bench(room: whole / 2)
      let connection = try NarrowConnection()
      let id = try bench.admit(connection)
      try #require(eventually { bench.frames(id) > 40 })
      _ = bench.pipeline.remove(id)
      let half = PictureSize(width: 160, height: 120)
      #expect(bench.rendition?.size == half)
      try expectWhole(connection.packets, half, least: 40)
    }

    @Test func `an encoder that is made anew in another size does not count against itself`() throws {
      let bench = try Bench()
      let connection = try NarrowConnection()
      let id = try bench.admit(connection)
      try #require(eventually { bench.frames(id) > 10 })
      // What the budget leaves while this encoder works.
      bench.room.set(0)
      let size = PictureSize(width: 160, height: 120)
      try bench.pipeline.restrict(StreamRestrictions(encoder: EncoderRestrictions(maximumSize: size)))
      try #require(eventually { bench.rendition.map { $0.isRunning && $0.openings == 2 } == true })
      let frames = bench.frames(id)
      #expect(eventually { bench.frames(id) > frames + 10 })
      #expect(bench.rendition?.size == size)
      withExtendedLifetime(connection) {}
    }

    @Test func `an encoder of half the size is made anew once the processors suffice for the full size`() throws {
      let whole = H264Plan.processors(for: Self.size, at: .thirty)
      let bench = try Bench(room: whole / 2, sizePatience: .milliseconds(600))
      let connection = try NarrowConnection()
      let id = try bench.admit(connection)
      // Twice the time in which it would change.
      try #require(eventually { bench.frames(id) > 40 })
      let half = try #require(bench.rendition)
      #expect(half.size == PictureSize(width: 160, height: 120) && half.openings == 1, "\(half)")
      bench.room.set(whole)
      try #require(eventually { bench.rendition.map { $0.isRunning && $0.openings == 2 } == true })
      #expect(bench.rendition?.size == Self.size)
      let frames = bench.frames(id)
      #expect(eventually { bench.frames(id) > frames + 40 })
      #expect(bench.rendition?.openings == 2)
      #expect(bench.room.grants.count == 2 && bench.room.grants.last == whole, "\(bench.room.grants)")
      withExtendedLifetime(connection) {}
    }

    @Test func `a question for the refusal takes no processors, and a viewer takes them once`() throws {
      let whole = H264Plan.processors(for: Self.size, at: .thirty)
      let bench = try Bench(room: whole)
      for _ in 0..<5 { #expect(bench.pipeline.h264Refusal == nil) }
      #expect(bench.room.grants.isEmpty)
      let connection = try NarrowConnection()
      let id = try bench.admit(connection)
      try #require(eventually { bench.frames(id) > 10 })
      // Another camera has all that is left now.
      bench.room.set(0)
      #expect(bench.pipeline.h264Refusal == nil)
      #expect(bench.room.grants == [whole])
      withExtendedLifetime(connection) {}
    }

    @Test func `where they suffice for nothing, a viewer is told what would help, and nothing is made`() throws {
      let bench = try Bench(room: 0.001)
      let refusal = try #require(bench.pipeline.h264Refusal)
      guard case .processors(PictureSize(width: 160, height: 120), _, 0.001) = refusal else {
        Issue.record("\(refusal)")
        return
      }
      for word in ["160x120", "--cpu-budget leaves 0.0", "--size", "--codec h264"] {
        #expect(refusal.description.contains(word), "\(refusal)")
      }
      let connection = try NarrowConnection()
      #expect(throws: StreamDestinationError.self) { try bench.admit(connection) }
      #expect(bench.pipeline.statistics.destinations.isEmpty && bench.rendition == nil)
      // Viewers of the stream's own pictures do not notice.
      let id = try bench.admit(connection, isH264: false)
      #expect(eventually { bench.frames(id) > 10 })
    }

    @Test func `an encoder that cannot be made is the reason for the next viewer`() throws {
      let attempts = Mutex(0)
      let bench = try Bench { _ in
        attempts.withLock { $0 += 1 }
        throw EncoderError.unavailable("none is left")
      }
      let (first, second) = (try NarrowConnection(), try NarrowConnection())
      let id = try bench.admit(first)
      // The reason is there a moment before the refusal.
      try #require(eventually { bench.rendition?.failure == "none is left" && bench.pipeline.h264Refusal != nil })
      let refusal = try #require(bench.pipeline.h264Refusal)
      guard case .failed("none is left", let pause) = refusal else {
        Issue.record("\(refusal)")
        return
      }
      // A minute after the failure.
      #expect(pause > .zero && pause <= .seconds(60) && (10...60).contains(refusal.retryAfter ?? 0), "\(refusal)")
      #expect(throws: StreamDestinationError.self) { try bench.admit(second) }
      _ = bench.pipeline.remove(id)
      usleep(200_000)
      guard case .failed("none is left", let rest)? = bench.pipeline.h264Refusal else {
        Issue.record("\(String(describing: bench.pipeline.h264Refusal))")
        return
      }
      #expect(rest < pause && attempts.withLock { $0 } == 1 && bench.rendition?.failures == 1)
    }

    @Test func `viewers get pictures once the system has a thread for the encoder again`() throws {
      let starts = Mutex(0)
      let startThread: RenditionThread.StartThread = { name, body throws(SystemFailure) in
        let count = starts.withLock { count in
          count += 1
          return count
        }
        guard count > 2 else { throw SystemFailure("pthread_create", errorNumber: EAGAIN) }
        try RenditionThread.startDetached(name, body)
      }
      func makeBench() throws -> Bench {
        starts.withLock { $0 = 0 }
        return try Bench(change: { plan in
          plan.pauses = Duration.seconds(2)...Duration.seconds(2)
          plan.startThread = startThread
        })
      }
      var (bench, connection) = (try makeBench(), try NarrowConnection())
      var begin = Instant.now()
      var id = try bench.admit(connection)
      var (rendition, refusal) = (bench.rendition, bench.pipeline.h264Refusal)
      // On a host that is held up, the second attempt may have been made by now.
      for _ in 0..<9 where Instant.now() - begin >= .seconds(2) {
        bench.end()
        (bench, connection) = (try makeBench(), try NarrowConnection())
        begin = .now()
        id = try bench.admit(connection)
        (rendition, refusal) = (bench.rendition, bench.pipeline.h264Refusal)
      }
      let failed = try #require(rendition)
      #expect(failed.failure?.hasPrefix("no thread: ") == true && failed.failures == 1, "\(failed)")
      guard case .failed(_, let pause)? = refusal else {
        Issue.record("\(String(describing: refusal))")
        return
      }
      #expect(pause <= .seconds(2))
      try #require(eventually { bench.frames(id) > 10 })
      let works = try #require(bench.rendition)
      #expect(works.failures == 2 && works.isRunning && works.failure == nil && works.openings == 1, "\(works)")
      #expect(starts.withLock { $0 } == 3)
      let events = bench.pipeline.takeRenditionEvents()
      #expect(events.map(\.isWarning) == [true, true, false], "\(events)")
      withExtendedLifetime(connection) {}
    }

    @Test func `a thread that could not be started is not started again once its viewer has left`() throws {
      let starts = Mutex(0)
      let startThread: RenditionThread.StartThread = { _, _ throws(SystemFailure) in
        starts.withLock { $0 += 1 }
        throw SystemFailure("pthread_create", errorNumber: EAGAIN)
      }
      let thread = RenditionThread(
        .h264, EncoderRequests(), frameRate: .thirty, reducer: FrameReducer(capacity: 3),
        pauses: Duration.milliseconds(1)...Duration.milliseconds(1), startThread: startThread)
      let rendition = UnpreparedRendition(thread)
      thread.keep(until: nil)
      thread.start(rendition)
      usleep(20_000)
      thread.startAgain(rendition)
      #expect(starts.withLock { $0 } == 2 && thread.present == .resting)
      usleep(20_000)
      thread.keep(until: .now())
      thread.startAgain(rendition)
      #expect(starts.withLock { $0 } == 2 && thread.present == .resting)
    }

    @Test(arguments: [(0.0, 10), (9.5, 10), (10.5, 11), (59.0, 59), (959.001, 960)])
    func `a refused client may ask again at the encoder's next attempt, but not within ten seconds`(
      pause: Double, seconds: Int
    ) {
      #expect(H264Refusal.failed("it broke", retry: Duration(seconds: pause)).retryAfter == seconds)
    }

    @Test func `a program without an encoder for it says so`() throws {
      let configuration = EncoderSettings().configuration(
        size: Self.size, frameRate: .thirty, bitrate: 900_000, color: .bt709, processors: 1)
      let pipeline = try Pipeline(
        source: try SyntheticCamera(size: Self.size, frameRate: .thirty),
        encoder: try EncoderSelector.select(.x264, configuration).encoder, destinations: [],
        keyFrameInterval: Duration(seconds: 1), h264: H264Plan(configuration, obstacle: "there is no x264"))
      #expect(pipeline.h264Refusal == .noEncoder("there is no x264") && pipeline.h264ParameterSets == nil)
      #expect(pipeline.h264Refusal?.kind == .unavailable && pipeline.h264Refusal?.retryAfter == nil)
      _ = pipeline.waitUntilEnd()
    }

    @Test func `the room decides between the full size, half of it, and none`() {
      let size = PictureSize(width: 1920, height: 1080)
      let whole = H264Plan.processors(for: size, at: .thirty)
      // The estimate of `EncoderSelector.threads`: half a core for 1080p30.
      #expect((0.4...0.6).contains(whole))
      #expect(H264Plan.size(of: size, at: .thirty, room: whole) == size)
      #expect(H264Plan.size(of: size, at: .thirty, room: whole * 0.9) == PictureSize(width: 960, height: 540))
      #expect(H264Plan.size(of: size, at: .thirty, room: whole / 5) == nil)
      // Half of this is too small to encode well.
      let tiny = PictureSize(width: 62, height: 62)
      #expect(H264Plan.size(of: tiny, at: .thirty, room: H264Plan.processors(for: tiny, at: .thirty) / 2) == nil)
    }
  }
#endif
