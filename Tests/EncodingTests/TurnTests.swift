#if X264
  import Foundation
  import Media
  import Platform
  import Synchronization
  import TestSupport
  import Testing
  import X264

  import Encoding

  @Suite struct TurnTests {
    private static let landscape = TurningStream.landscape
    private static let portrait = TurningStream.portrait

    private static func configuration(lookahead: Int = 0) -> EncoderConfiguration {
      EncoderConfiguration(
        size: landscape, frameRate: .thirty, bitrate: 500_000, color: .bt709, lookahead: lookahead,
        x264Preset: lookahead > 0 ? "superfast" : "ultrafast")
    }

    private static func encoder(
      _ configuration: EncoderConfiguration = configuration(), log: EncoderLog = EncoderLog(),
      policy: EncoderLineup.Policy = EncoderLineup.Policy()
    ) throws -> EncoderLineup {
      let makers = EncoderMakers(
        policy: policy,
        software: { configuration throws(EncoderError) in
          try log.enter(configuration)
          return try X264Encoder(configuration)
        })
      let encoder = try EncoderLineup(active: EncoderSlots(X264Encoder(configuration), makers), makers, .both)
      try encoder.prepare()
      return encoder
    }

    @Test func `the picture rotates from one frame to the next, with a key frame of the new size`() throws {
      let log = EncoderLog()
      let encoder = try Self.encoder(log: log)
      var turning = try TurningStream(encoder)
      for turn in 0..<25 {
        let size = turn.isMultiple(of: 2) ? Self.landscape : Self.portrait
        try turning.encode(4 + turn % 3, size)
        #expect(encoder.configuration.size == size)
        let sets = encoder.parameterSets
        #expect(try SequenceParameterSet(nalUnit: sets.sequence).size == size)
      }
      #expect(turning.stream.keyFrames == [0] + turning.turns)
      #expect(encoder.counters.switches == 24)
      #expect(log.state.withLock { $0.made } == [Self.portrait])
      #expect(log.state.withLock { $0.threads } == ["nj-standby"])
      #expect((encoder.standbyMemory ?? -1) >= 0)
      #expect(encoder.events.take().isEmpty)
      encoder.stop()
      try turning.check()
    }

    @Test func `two rotations one frame apart give two key frames`() throws {
      let encoder = try Self.encoder()
      var turning = try TurningStream(encoder)
      try turning.encode(5, Self.landscape)
      for _ in 0..<5 {
        try turning.encode(1, Self.portrait)
        try turning.encode(1, Self.landscape)
      }
      try turning.encode(5, Self.landscape)
      #expect(turning.stream.keyFrames == [0] + turning.turns)
      encoder.stop()
      try turning.check()
    }

    @Test func `with lookahead nothing is lost, and the order is kept`() throws {
      let log = EncoderLog()
      let encoder = try Self.encoder(Self.configuration(lookahead: 10), log: log)
      var turning = try TurningStream(encoder)
      for turn in 0..<12 {
        // Shorter than the lookahead, and longer.
        try turning.encode([30, 1, 4, 17][turn % 4], turn.isMultiple(of: 2) ? Self.landscape : Self.portrait)
      }
      try turning.flush()
      #expect(Set(turning.stream.keyFrames).isSuperset(of: [0] + turning.turns))
      #expect(log.state.withLock { $0.made } == [Self.portrait])
      encoder.stop()
      try turning.check()
    }

    @Test func `a key-frame request and a rotation on the same frame give one key frame`() throws {
      let encoder = try Self.encoder()
      var turning = try TurningStream(encoder)
      try turning.encode(5, Self.landscape)
      try turning.encode(5, Self.portrait, keyFrame: true)
      try turning.encode(1, Self.portrait, keyFrame: true)
      try turning.encode(3, Self.landscape)
      #expect(turning.stream.keyFrames == [0, 5, 10, 11])
      encoder.stop()
      try turning.check()
    }

    @Test(arguments: [0, 10])
    func `a change of bitrate or rate holds for both aspects`(lookahead: Int) throws {
      let encoder = try Self.encoder(Self.configuration(lookahead: lookahead))
      var turning = try TurningStream(encoder)
      let rate = try #require(FrameRate(15))
      try turning.encode(3, Self.landscape)
      try encoder.change(bitrate: 300_000, frameRate: rate)
      try turning.encode(3, Self.portrait)
      #expect(encoder.configuration.bitrate == 300_000)
      #expect(encoder.configuration.frameRate == rate)
      try encoder.change(bitrate: 400_000, frameRate: .thirty)
      #expect(throws: EncoderError.self) { try encoder.change(bitrate: 0, frameRate: .thirty) }
      try turning.encode(3, Self.landscape)
      #expect(encoder.configuration.bitrate == 400_000)
      #expect(encoder.configuration.frameRate == .thirty)
      try turning.flush()
      encoder.stop()
      try turning.check()
    }

    @Test func `a rotation before the standby is ready waits for it, and makes no third encoder`() throws {
      let log = EncoderLog()
      log.state.withLock { $0.isClosed = true }
      let encoder = try Self.encoder(log: log)
      var turning = try TurningStream(encoder)
      try turning.encode(3, Self.landscape)
      #expect(!encoder.isStandbyReady)
      #expect(eventually { log.state.withLock { $0.made.count } == 1 })
      Thread.detachNewThread {
        usleep(100_000)
        log.state.withLock { $0.isClosed = false }
      }
      try turning.encode(3, Self.portrait)
      #expect(encoder.isStandbyReady)
      #expect(log.state.withLock { $0.made } == [Self.portrait])
      encoder.stop()
      try turning.check()
    }

    @Test func `a standby that does not get ready costs frames of its aspect alone, until it is`() throws {
      let log = EncoderLog()
      log.state.withLock { $0.isClosed = true }
      var policy = EncoderLineup.Policy()
      policy.preparationLimit = Duration(seconds: 0.1)
      let encoder = try Self.encoder(log: log, policy: policy)
      var turning = try TurningStream(encoder)
      try turning.encode(3, Self.landscape)
      for _ in 0..<3 {
        let error = #expect(throws: EncoderError.self) { try turning.encode(1, Self.portrait) }
        guard case .hung? = error else {
          Issue.record("\(String(describing: error))")
          return
        }
      }
      try turning.encode(3, Self.landscape)
      log.state.withLock { $0.isClosed = false }
      #expect(eventually { encoder.isStandbyReady })
      try turning.encode(3, Self.portrait)
      #expect(turning.stream.keyFrames == [0, 6])
      #expect(log.state.withLock { $0.made } == [Self.portrait])
      encoder.stop()
      try turning.check()
    }

    @Test func `a standby that cannot be made is reported once, and tried again at each rotation`() throws {
      let log = EncoderLog()
      log.state.withLock { $0.fails = true }
      let encoder = try Self.encoder(log: log)
      var turning = try TurningStream(encoder)
      try turning.encode(3, Self.landscape)
      #expect(eventually { log.state.withLock { $0.made.count } == 1 })
      for _ in 0..<2 {
        let error = #expect(throws: EncoderError.self) { try turning.encode(1, Self.portrait) }
        #expect(error?.description == "it was told to fail")
      }
      try turning.encode(3, Self.landscape)
      #expect(
        encoder.events.take().map(\.description)
          == ["no standby encoder for 240x320: it was told to fail; nightjar tries again at the next rotation"])
      #expect(encoder.counters.switches == 0)
      log.state.withLock { $0.fails = false }
      try turning.encode(3, Self.portrait)
      try turning.encode(3, Self.landscape)
      #expect(log.state.withLock { $0.made.count } == 4)
      #expect(turning.stream.keyFrames == [0, 6, 9])
      encoder.stop()
      try turning.check()
    }

    @Test(arguments: [0, 10])
    func `without a standby, the encoder is made at the rotation`(lookahead: Int) throws {
      let log = EncoderLog()
      var policy = EncoderLineup.Policy()
      policy.keepsStandby = false
      let encoder = try Self.encoder(Self.configuration(lookahead: lookahead), log: log, policy: policy)
      var turning = try TurningStream(encoder)
      try turning.encode(5, Self.landscape)
      #expect(log.state.withLock { $0.made }.isEmpty)
      try turning.encode(1, Self.portrait)
      try turning.encode(1, Self.landscape)
      try turning.encode(5, Self.portrait)
      #expect(log.state.withLock { $0.made } == [Self.portrait, Self.landscape, Self.portrait])
      #expect(!encoder.isStandbyReady)
      try turning.flush()
      encoder.stop()
      try turning.check()
    }

    @Test func `a frame of neither aspect is refused, and no encoder changes`() throws {
      let encoder = try Self.encoder()
      let pool = try FramePool(size: PictureSize(width: 640, height: 480))
      let error = #expect(throws: EncoderError.self) {
        try encoder.encode(pool.frame(), keyFrame: true) { _ in }
      }
      #expect(error?.description == EncoderError.frameSize(pool.size, expected: Self.landscape).description)
      #expect(encoder.counters.switches == 0)
      encoder.stop()
    }

    @Test func `the standby's thread sleeps while nothing rotates`() throws {
      let log = EncoderLog()
      let encoder = try Self.encoder(log: log)
      var turning = try TurningStream(encoder)
      #expect(eventually { encoder.isStandbyReady })
      let task = log.state.withLock { $0.task }
      /// Returns the number of times that the thread went to sleep, and its processor time.
      func figures() throws -> [String] {
        let status = try KernelFile.text("/proc/\(task)/status")
        let stat = try KernelFile.text("/proc/\(task)/stat").split(separator: " ")
        let sleeps = status.split(separator: "\n").filter { $0.hasPrefix("voluntary_ctxt_switches") }.map(String.init)
        return sleeps + stat[13...14].map(String.init) + [String(stat[2])]
      }
      var before: [String] = []
      // It has to fall asleep first.
      #expect(
        try eventually {
          defer { usleep(50_000) }
          let now = try figures()
          defer { before = now }
          // What waits for a processor has not fallen asleep.
          return now == before && now.last == "S"
        })
      for _ in 0..<20 {
        try turning.encode(1, Self.landscape)
        usleep(25_000)
      }
      #expect(before.count == 4)
      #expect(try figures() == before)
      encoder.stop()
    }

    @Test func `a square picture needs no standby`() throws {
      let log = EncoderLog()
      var configuration = Self.configuration()
      configuration.size = PictureSize(width: 240, height: 240)
      let encoder = try Self.encoder(configuration, log: log)
      let pool = try FramePool(size: configuration.size)
      var stream = CodedStream()
      try encoder.encode(pool.frame(), keyFrame: true) { stream.append($0) }
      encoder.stop()
      #expect(log.state.withLock { $0.made }.isEmpty)
      #expect(try stream.decodedCount() == 1)
    }

    @Test func `the other aspect has no more slices than rows of macroblocks`() throws {
      var configuration = Self.configuration()
      configuration.size = PictureSize(width: 32, height: 320)
      configuration.slices = 8
      let turned = try #require(configuration.turned)
      #expect(turned.size == PictureSize(width: 320, height: 32))
      #expect(turned.slices == 2)
      try turned.check()
    }

    @Test func `after stop nothing is encoded, however far the standby is`() throws {
      for delay in [0, 1000, 50_000] {
        let log = EncoderLog()
        let encoder = try Self.encoder(log: log)
        usleep(UInt32(delay))
        encoder.stop()
        encoder.stop()
        var turning = try TurningStream(encoder)
        for size in [Self.landscape, Self.portrait] {
          #expect(throws: EncoderError.self) { try turning.encode(1, size) }
        }
        #expect(throws: EncoderError.self) { try encoder.flush { _ in } }
        #expect(throws: EncoderError.self) { try encoder.prepare() }
        #expect(log.state.withLock { $0.made.count } <= 1)
      }
    }

    @Test func `the first frame after a rotation costs about as much as a key frame`() throws {
      let encoder = try Self.encoder()
      var turning = try TurningStream(encoder)
      try turning.encode(10, Self.landscape)
      #expect(eventually { encoder.isStandbyReady })
      let first = try Self.processorTime { try turning.encode(1, Self.portrait) }
      var steady: [Int64] = []
      for _ in 0..<21 { steady.append(try Self.processorTime { try turning.encode(1, Self.portrait, keyFrame: true) }) }
      let median = steady.sorted()[10]
      #expect(first < median * 10, "\(first) ns, then \(median) ns")
      encoder.stop()
    }

    /// Nanoseconds of this thread's processor time in `body`.
    private static func processorTime(_ body: () throws -> Void) rethrows -> Int64 {
      func now() -> Int64 {
        var time = timespec()
        clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time)
        return Int64(time.tv_sec) * 1_000_000_000 + Int64(time.tv_nsec)
      }
      let start = now()
      try body()
      return now() - start
    }
  }
#endif
