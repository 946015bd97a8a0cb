#if X264
  import Foundation
  import Media
  import Platform
  import Synchronization
  import TestSupport
  import Testing
  import X264

  import Encoding

  @Suite struct FailoverTests {
    private static let size = PictureSize(width: 320, height: 240)
    private static let configuration = EncoderConfiguration(
      size: size, frameRate: .thirty, bitrate: 500_000, color: .bt709)
    /// The hardware of the tests makes the main profile, what stands behind it baseline.
    private static let hardwareProfile: UInt8 = 77
    private static let fallbackProfile: UInt8 = 66

    /// Three seconds for a frame: a machine that is busy with something else is no hang.
    private static func policy(keepsStandby: Bool = true) -> EncoderLineup.Policy {
      var policy = EncoderLineup.Policy()
      policy.hangLimit = 100
      policy.keepsStandby = keepsStandby
      policy.openingLimit = Duration(seconds: 60)
      return policy
    }

    private static func encoder(
      _ script: ScriptedHardware.Script, policy: EncoderLineup.Policy = policy(),
      health: DriverHealth = DriverHealth(), hasFallback: Bool = true
    ) throws -> EncoderLineup {
      let x264: EncoderLineup.MakeSoftware = { configuration throws(EncoderError) in try X264Encoder(configuration) }
      let encoder = try EncoderLineup(
        configuration, library: "scripted", policy: policy, health: health, software: hasFallback ? x264 : nil
      ) { configuration throws(EncoderError) in
        var own = configuration
        own.profile = .main
        own.x264Preset = "superfast"
        return try ScriptedHardware(own, script)
      }
      try encoder.prepare()
      return encoder
    }

    /// Encodes frames `range`, those in `keys` as key frames.
    private static func encode(
      _ range: Range<Int>, keys: Set<Int> = [0], _ encoder: EncoderLineup, into stream: inout CodedStream
    ) throws {
      let pool = try FramePool(size: size)
      for index in range {
        let frame = try pool.frame(at: Instant.zero + FrameRate.thirty.time(ofFrame: Int64(index)))
        (frame.planes.luma + index % 100 * frame.planes.lumaStride).update(repeating: 200, count: size.width)
        try encoder.encode(frame, keyFrame: keys.contains(index)) { stream.append($0) }
      }
    }

    @Test(arguments: [0, 1, 17, 29])
    func `a picture that the hardware fails on is encoded by x264, and none is missing`(failing: Int) throws {
      let script = ScriptedHardware.Script()
      script.state.withLock { $0.failing = [failing] }
      let encoder = try Self.encoder(script)
      var stream = CodedStream()
      try Self.encode(0..<30, encoder, into: &stream)
      #expect(stream.timestamps == (0..<30).map { Instant.zero + FrameRate.thirty.time(ofFrame: $0) })
      #expect(stream.keyFrames == (failing == 0 ? [0] : [0, failing]))
      #expect(stream.profiles == (failing == 0 ? [] : [Self.hardwareProfile]) + [Self.fallbackProfile])
      #expect(encoder.counters.failovers == 1)
      #expect(encoder.counters.hangs == 0)
      #expect(encoder.parameterSets.sequence[1] == Self.fallbackProfile)
      guard case .failedOver(_, .call(_, "encode", 7, _), let retry)? = encoder.events.take().first else {
        Issue.record("an event tells of the failure")
        return
      }
      #expect(retry == RetryBackOff.shortest)
      encoder.stop()
      #expect(try stream.decodedCount() == 30)
    }

    @Test(arguments: [true, false])
    func `the hardware is taken back at a key frame, and told what was changed meanwhile`(standby: Bool) throws {
      let script = ScriptedHardware.Script()
      script.state.withLock { $0.failing = [5] }
      let encoder = try Self.encoder(script, policy: Self.policy(keepsStandby: standby))
      var stream = CodedStream()
      try Self.encode(0..<10, encoder, into: &stream)
      try encoder.change(bitrate: 300_000, frameRate: .thirty)
      #expect(eventually { script.state.withLock { $0.opened } == 2 })
      // Ready or not, it is not used before a key frame is due.
      try Self.encode(10..<15, encoder, into: &stream)
      #expect(encoder.counters.recoveries == 0)
      var next = 15
      #expect(
        try eventually {
          try Self.encode(next..<next + 1, keys: [next], encoder, into: &stream)
          next += 1
          return encoder.counters.recoveries == 1
        })
      try Self.encode(next..<next + 5, encoder, into: &stream)
      #expect(stream.profiles.last == Self.hardwareProfile)
      #expect(script.state.withLock { $0.changes } == [300_000])
      #expect(encoder.events.take().count == 2)
      #expect(encoder.configuration.bitrate == 300_000)
      encoder.stop()
      #expect(try stream.decodedCount() == next + 5)
    }

    @Test func `hardware that fails again is tried again later each time`() throws {
      let script = ScriptedHardware.Script()
      script.state.withLock { $0.failing = [3] }
      let encoder = try Self.encoder(script)
      var stream = CodedStream()
      script.state.withLock { $0.refusesToOpen = true }
      try Self.encode(0..<5, encoder, into: &stream)
      var retries: [Int64] = []
      #expect(
        eventually(within: 60) {
          for case .retryFailed(_, let retry) in encoder.events.take() {
            retries.append(retry.nanoseconds / 1_000_000_000)
          }
          return retries.count >= 2
        })
      #expect(retries.prefix(2) == [2, 4])
      try Self.encode(5..<8, encoder, into: &stream)
      #expect(stream.timestamps.count == 8)
    }

    @Test(arguments: [0, 1, 17])
    func `a driver that hangs costs no picture, is left alone for a while, and is then opened anew`(hanging: Int) throws
    {
      let script = ScriptedHardware.Script()
      script.state.withLock { $0.hanging = hanging }
      let clock = ManualClock()
      let encoder = try Self.encoder(script, health: DriverHealth(clock: clock.now))
      var stream = CodedStream()
      try Self.encode(0..<30, keys: [0, 20, 25], encoder, into: &stream)
      #expect(stream.timestamps.count == 30)
      #expect(encoder.counters.failovers == 1)
      #expect(encoder.counters.hangs == 1)
      guard case .failedOver(_, .hung, let retry)? = encoder.events.take().first else {
        Issue.record("an event tells of the hang")
        return
      }
      #expect(retry == RetryBackOff.shortest)
      // Even once it answers again: x264 stays, and the driver's picture goes nowhere.
      script.release()
      #expect(eventually { script.state.withLock { $0.stopped } == 1 })
      try Self.encode(30..<40, keys: [30, 35], encoder, into: &stream)
      #expect(stream.timestamps.count == 40)
      #expect(encoder.counters.recoveries == 0)
      #expect(script.state.withLock { $0.opened } == 1)
      try encoder.change(bitrate: 300_000, frameRate: .thirty)
      clock.advance(by: retry)
      var next = 40
      #expect(
        try eventually {
          try Self.encode(next..<next + 1, keys: [next], encoder, into: &stream)
          next += 1
          return encoder.counters.recoveries == 1
        })
      #expect(stream.profiles.last == Self.hardwareProfile)
      #expect(script.state.withLock { ($0.opened, $0.changes) } == (2, [300_000]))
      encoder.stop()
      #expect(try stream.decodedCount() == next)
    }

    @Test func `a driver that always hangs gets three threads, after growing pauses, and another when one comes back`()
      throws
    {
      let script = ScriptedHardware.Script()
      defer { script.release() }
      script.state.withLock { $0.hangsAlways = true }
      let clock = ManualClock()
      let encoder = try Self.encoder(script, health: DriverHealth(clock: clock.now))
      var stream = CodedStream()
      var next = 0
      func encode(until isDone: () -> Bool) throws {
        #expect(
          try eventually {
            try Self.encode(next..<next + 1, keys: [next], encoder, into: &stream)
            next += 1
            return isDone()
          })
      }
      var retries: [Int64?] = []
      for number in 1...DriverHealth.stuckLimit {
        try encode { encoder.counters.hangs == number }
        for event in encoder.events.take() {
          switch event {
          case .failedOver(_, .hung, let retry): retries.append(retry.nanoseconds / 1_000_000_000)
          case .abandoned(_, .hung): retries.append(nil)
          default: break
          }
        }
        if let last = retries.last, let last { clock.advance(by: Duration(seconds: Double(last))) }
      }
      #expect(retries == [1, 2, nil])
      clock.advance(by: Duration(seconds: 86_400))
      try Self.encode(next..<next + 10, keys: [next, next + 5], encoder, into: &stream)
      next += 10
      #expect(script.state.withLock { $0.opened } == DriverHealth.stuckLimit)
      #expect(stream.profiles.last == Self.fallbackProfile)
      script.state.withLock { $0.hangsAlways = false }
      script.release()
      try encode { encoder.counters.recoveries == DriverHealth.stuckLimit }
      #expect(stream.profiles.last == Self.hardwareProfile)
      encoder.stop()
      // Those that came back while another hung are not spoken to, not even for their end.
      #expect(eventually { script.state.withLock { $0.stopped } > 1 })
      #expect(try stream.decodedCount() == next)
    }

    @Test func `a frame whose memory the hardware does not read is loaded once more`() throws {
      let script = ScriptedHardware.Script()
      script.state.withLock { $0.refusingImport = 3 }
      let encoder = try Self.encoder(script)
      var stream = CodedStream()
      try Self.encode(0..<10, encoder, into: &stream)
      #expect(encoder.counters.failovers == 0)
      #expect(script.state.withLock { $0.loads } == 11)
      encoder.stop()
      #expect(try stream.decodedCount() == 10)
    }

    @Test func `a driver that comes back late is not taken back, however long its end takes`() throws {
      let script = ScriptedHardware.Script()
      script.state.withLock {
        $0.hanging = 2
        $0.hangsAtStop = true
      }
      let clock = ManualClock()
      let encoder = try Self.encoder(script, health: DriverHealth(clock: clock.now))
      var stream = CodedStream()
      try Self.encode(0..<5, encoder, into: &stream)
      script.release()
      #expect(eventually { script.state.withLock { $0.pictures } == 3 })
      for index in 5..<25 {
        usleep(20_000)
        try Self.encode(index..<index + 1, keys: [index], encoder, into: &stream)
      }
      #expect(encoder.counters.recoveries == 0)
      #expect(encoder.counters.failovers == 1)
      script.releaseStop()
      encoder.stop()
      #expect(try stream.decodedCount() == 25)
    }

    @Test func `hardware that hangs while it is opened again is left alone for a while`() throws {
      let script = ScriptedHardware.Script()
      defer { script.release() }
      script.state.withLock { $0.failing = [1] }
      var policy = Self.policy()
      policy.openingLimit = Duration(seconds: 4)
      let clock = ManualClock()
      let encoder = try Self.encoder(script, policy: policy, health: DriverHealth(clock: clock.now))
      var stream = CodedStream()
      script.state.withLock { $0.hangsAtOpening = true }
      try Self.encode(0..<3, encoder, into: &stream)
      #expect(eventually { script.state.withLock { $0.opened } == 2 })
      var next = 3
      #expect(
        try eventually(within: 60) {
          try Self.encode(next..<next + 1, keys: [next], encoder, into: &stream)
          next += 1
          return encoder.counters.hangs == 1
        })
      guard case .retryFailed(.hung, RetryBackOff.shortest)? = encoder.events.take().last else {
        Issue.record("an event tells of the hang")
        return
      }
      #expect(encoder.counters.recoveries == 0)
      #expect(stream.timestamps.count == next)
    }

    @Test func `without any fallback, both reasons are reported`() throws {
      let script = ScriptedHardware.Script()
      script.state.withLock { $0.failing = [1] }
      let encoder = try EncoderLineup(
        Self.configuration, library: "scripted", policy: Self.policy(keepsStandby: false),
        software: { _ throws(EncoderError) in throw .unavailable("no such thing") }
      ) { _ throws(EncoderError) in try ScriptedHardware(Self.configuration, script) }
      var stream = CodedStream()
      #expect(throws: EncoderError.self) { try Self.encode(0..<2, encoder, into: &stream) }
      #expect(encoder.counters.failovers == 1)
      #expect(
        encoder.events.take().map(\.description)
          == ["scripted: encode failed: it was told to (code 7), and no fallback works: no such thing"])
    }

    @Test func `a driver that hangs for ever does not hold up the end`() throws {
      let script = ScriptedHardware.Script()
      defer { script.release() }
      script.state.withLock { $0.hanging = 2 }
      let encoder = try Self.encoder(script)
      var stream = CodedStream()
      try Self.encode(0..<5, encoder, into: &stream)
      encoder.stop()
      encoder.stop()
      #expect(script.state.withLock { $0.stopped } == 0)
      #expect(throws: EncoderError.self) { try Self.encode(5..<6, encoder, into: &stream) }
      #expect(stream.timestamps.count == 5)
    }

    @Test func `a driver that hangs while it opens is no encoder`() throws {
      let script = ScriptedHardware.Script()
      defer { script.release() }
      script.state.withLock { $0.hangsAtOpening = true }
      var policy = Self.policy()
      policy.openingLimit = Duration(seconds: 0.2)
      let error = #expect(throws: EncoderError.self) { try Self.encoder(script, policy: policy) }
      guard case .hung? = error else {
        Issue.record("\(String(describing: error))")
        return
      }
    }

    @Test func `without a fall-back the first failure is the end`() throws {
      let script = ScriptedHardware.Script()
      script.state.withLock { $0.failing = [3] }
      let encoder = try Self.encoder(script, hasFallback: false)
      var stream = CodedStream()
      let error = #expect(throws: EncoderError.self) { try Self.encode(0..<5, encoder, into: &stream) }
      guard case .lost(let reason)? = error else {
        Issue.record("\(String(describing: error))")
        return
      }
      #expect(reason == "scripted: encode failed: it was told to (code 7)")
      #expect(stream.timestamps.count == 3)
      #expect(eventually { script.state.withLock { $0.stopped } == 1 })
    }

    /// Owns frames that are of no pool.
    private final class Nobody: FrameOwner, @unchecked Sendable {
      override func recycle(slot: Int) {}
    }

    @Test func `a frame of another size is the caller's mistake, not the hardware's`() throws {
      let script = ScriptedHardware.Script()
      let encoder = try Self.encoder(script)
      let pool = try FramePool(size: PictureSize(width: 640, height: 480))
      #expect(throws: EncoderError.self) { try encoder.encode(pool.frame(), keyFrame: true) { _ in } }
      // Rows that overlap.
      let good = try FramePool(size: Self.size).frame()
      let planes = good.planes
      let narrow = Frame(
        planes: NV12Planes(
          size: planes.size, luma: planes.luma, lumaStride: 10, chroma: planes.chroma, chromaStride: 10),
        color: .bt709, timestamp: .zero, captured: .zero, slot: 0, owner: Nobody())
      #expect(throws: EncoderError.self) { try encoder.encode(narrow, keyFrame: true) { _ in } }
      #expect(encoder.counters.failovers == 0)
      #expect(throws: EncoderError.self) { try encoder.change(bitrate: 0, frameRate: .thirty) }
    }

    @Test func `after stop nothing is encoded, and every encoder was stopped once`() throws {
      let script = ScriptedHardware.Script()
      script.state.withLock { $0.failing = [1] }
      let encoder = try Self.encoder(script)
      var stream = CodedStream()
      try Self.encode(0..<3, encoder, into: &stream)
      #expect(eventually { script.state.withLock { $0.opened } == 2 })
      encoder.stop()
      #expect(throws: EncoderError.self) { try Self.encode(3..<4, encoder, into: &stream) }
      #expect(throws: EncoderError.self) { try encoder.flush { _ in } }
      // A driver that takes two seconds for its end is left behind.
      #expect(eventually { script.state.withLock { $0.stopped } == 2 })
      #expect(stream.timestamps.count == 3)
    }
  }
#endif
