#if X264
  import Foundation
  import Media
  import Platform
  import Synchronization
  import TestSupport
  import Testing
  import X264

  import Encoding

  /// Two aspects on one driver, each with x264 behind it.
  @Suite struct TurnFailoverTests {
    private static let landscape = TurningStream.landscape
    private static let portrait = TurningStream.portrait
    /// The hardware of the tests makes the main profile, what stands behind it baseline.
    private static let hardwareProfile: UInt8 = 77
    private static let fallbackProfile: UInt8 = 66
    private static let configuration = EncoderConfiguration(
      size: landscape, frameRate: .thirty, bitrate: 500_000, color: .bt709)

    /// The scripts for the hardware of each aspect.
    private struct Scripts {
      let landscape = ScriptedHardware.Script()
      let portrait = ScriptedHardware.Script()

      func release() {
        for script in [landscape, portrait] { script.release() }
      }
    }

    /// Three seconds for a frame: a machine that is busy with something else is no hang.
    private static func policy() -> EncoderLineup.Policy {
      var policy = EncoderLineup.Policy()
      policy.hangLimit = 100
      policy.openingLimit = Duration(seconds: 60)
      return policy
    }

    private static func select(
      _ scripts: Scripts, _ choice: EncoderChoice = .auto, policy: EncoderLineup.Policy = policy(),
      clock: ManualClock = ManualClock()
    ) throws -> (EncoderSelection, EncoderLineup) {
      let candidate = EncoderSelector.HardwareCandidate(library: "scripted") { asked throws(EncoderError) in
        var own = asked
        own.profile = .main
        own.x264Preset = "superfast"
        return try ScriptedHardware(own, asked.size == landscape ? scripts.landscape : scripts.portrait)
      }
      let selection = try EncoderSelector.select(
        choice, configuration, hardware: [candidate], policy: policy, aspects: .both,
        clock: clock.now, software: { configuration throws(EncoderError) in try X264Encoder(configuration) })
      let encoder = try #require(selection.encoder as? EncoderLineup)
      return (selection, encoder)
    }

    /// An encoder whose standby is there.
    private static func ready(
      _ scripts: Scripts, clock: ManualClock = ManualClock()
    ) throws -> (EncoderEvents, EncoderLineup, TurningStream) {
      let (selection, encoder) = try select(scripts, clock: clock)
      #expect(eventually { encoder.isStandbyReady })
      let events = try #require(selection.events)
      return (events, encoder, try TurningStream(encoder))
    }

    @Test func `both aspects are on hardware, and each is opened once`() throws {
      let scripts = Scripts()
      let (selection, encoder) = try Self.select(scripts)
      #expect(selection.explanation == "x264 stands by")
      var turning = try TurningStream(encoder)
      for turn in 0..<20 { try turning.encode(3, turn.isMultiple(of: 2) ? Self.landscape : Self.portrait) }
      #expect(Set(turning.stream.profiles) == [Self.hardwareProfile])
      #expect(encoder.counters.switches == 19)
      encoder.stop()
      for script in [scripts.landscape, scripts.portrait] {
        #expect(eventually { script.state.withLock { ($0.opened, $0.stopped, $0.pictures) } == (1, 1, 30) })
      }
      try turning.check()
    }

    @Test(arguments: [false, true])
    func `a hardware failure around a rotation costs no picture`(asksForKeyFrame: Bool) throws {
      let scripts = Scripts()
      // The last picture before the first rotation, the first after it, and one in the midst.
      scripts.landscape.state.withLock { $0.failing = [4] }
      scripts.portrait.state.withLock { $0.failing = [0] }
      let (events, encoder, initial) = try Self.ready(scripts)
      var turning = initial
      try turning.encode(5, Self.landscape)
      try turning.encode(5, Self.portrait, keyFrame: asksForKeyFrame)
      try turning.encode(5, Self.landscape, keyFrame: asksForKeyFrame)
      #expect(encoder.counters.failovers == 2)
      #expect(encoder.counters.switches == 2)
      #expect(events.take().count >= 2)
      let keyFrames = turning.stream.keyFrames
      #expect(keyFrames == [0, 4, 5, 10])
      encoder.stop()
      try turning.check()
    }

    @Test(arguments: 1...4)
    func `hardware that fails right after a key frame is followed by another idr_pic_id`(failing: Int) throws {
      let scripts = Scripts()
      scripts.landscape.state.withLock { $0.failing = [failing] }
      let (_, encoder, initial) = try Self.ready(scripts)
      var turning = initial
      for _ in 0..<6 { try turning.encode(1, Self.landscape, keyFrame: true) }
      #expect(encoder.counters.failovers == 1)
      #expect(turning.stream.keyFrames == Array(0..<6))
      encoder.stop()
      try turning.check()
    }

    @Test func `hardware that failed in one aspect is taken back after a rotation to that aspect`() throws {
      let scripts = Scripts()
      scripts.landscape.state.withLock { $0.failing = [2] }
      let (_, encoder, initial) = try Self.ready(scripts)
      var turning = initial
      try turning.encode(4, Self.landscape)
      #expect(turning.stream.profiles.last == Self.fallbackProfile)
      try turning.encode(2, Self.portrait)
      #expect(turning.stream.profiles.last == Self.hardwareProfile)
      // It is ready a moment after it was opened.
      #expect(
        try eventually(within: 60) {
          try turning.encode(1, Self.portrait)
          try turning.encode(1, Self.landscape)
          return encoder.counters.recoveries == 1
        })
      #expect(turning.stream.profiles.last == Self.hardwareProfile)
      encoder.stop()
      try turning.check()
    }

    @Test func `hardware that comes back with slots of another size has recovered`() throws {
      let scripts = Scripts()
      scripts.landscape.state.withLock { $0.failing = [2] }
      let (events, encoder, initial) = try Self.ready(scripts)
      var turning = initial
      try turning.encode(4, Self.landscape)
      #expect(turning.stream.profiles.last == Self.fallbackProfile)
      let half = PictureSize(width: Self.landscape.width / 2, height: Self.landscape.height / 2)
      encoder.restrict(EncoderRestrictions(maximumSize: half))
      // No key frame is due, at which the former slots would take the hardware back.
      #expect(
        try eventually(within: 60) {
          try turning.encode(1, encoder.frameSize(for: Self.landscape))
          return turning.stream.profiles.last == Self.hardwareProfile
        })
      #expect(encoder.counters.recoveries == 1 && encoder.counters.adaptations == 1)
      let recoveries = events.take().count { if case .recovered = $0 { true } else { false } }
      #expect(recoveries == 1)
      encoder.stop()
      try turning.check()
    }

    @Test func `a driver that hung in one aspect is not asked in the other`() throws {
      let scripts = Scripts()
      defer { scripts.release() }
      scripts.landscape.state.withLock { $0.hanging = 3 }
      let (events, encoder, initial) = try Self.ready(scripts)
      var turning = initial
      try turning.encode(6, Self.landscape)
      try encoder.change(bitrate: 300_000, frameRate: .thirty)
      for turn in 0..<6 {
        try turning.encode(3, turn.isMultiple(of: 2) ? Self.portrait : Self.landscape, keyFrame: turn > 2)
      }
      #expect(encoder.configuration.bitrate == 300_000)
      let counters = encoder.counters
      #expect((counters.hangs, counters.failovers, counters.recoveries, counters.switches) == (1, 2, 0, 6))
      let told = events.take()
      guard told.count == 1, case .failedOver(_, .hung, RetryBackOff.shortest) = told[0] else {
        Issue.record("one event tells of the hang: \(told)")
        return
      }
      encoder.stop()
      // Not even its end is asked of a driver that holds a thread already.
      #expect(scripts.portrait.state.withLock { ($0.opened, $0.loads, $0.changes.count, $0.stopped) } == (1, 0, 0, 0))
      #expect(scripts.landscape.state.withLock { $0.stopped } == 0)
      scripts.release()
      #expect(eventually { scripts.landscape.state.withLock { $0.stopped } == 1 })
      try turning.check()
    }

    @Test func `a driver that hangs for the standby is left alone by the one at work`() throws {
      let scripts = Scripts()
      defer { scripts.release() }
      scripts.portrait.state.withLock { $0.hangsAtOpening = true }
      var policy = Self.policy()
      policy.openingLimit = Duration(seconds: 4)
      let (selection, encoder) = try Self.select(scripts, policy: policy)
      var turning = try TurningStream(encoder)
      try turning.encode(3, Self.landscape)
      #expect(turning.stream.profiles == [Self.hardwareProfile])
      // x264 does what the hardware does not.
      try turning.encode(3, Self.portrait)
      try turning.encode(3, Self.landscape)
      #expect(turning.stream.profiles == [Self.hardwareProfile, Self.fallbackProfile, Self.fallbackProfile])
      #expect(scripts.landscape.state.withLock { $0.pictures } == 3)
      let told = try #require(selection.events).take()
      #expect(told.count == 2)
      guard case .standbyWithoutHardware(Self.portrait, .hung, RetryBackOff.shortest)? = told.first,
        case .failedOver(_, .hung, RetryBackOff.shortest)? = told.last
      else {
        Issue.record("\(told)")
        return
      }
      // Counted once, by the encoder that is at work.
      #expect(encoder.counters.hangs == 1)
      encoder.stop()
      #expect(scripts.landscape.state.withLock { $0.stopped } == 0)
      try turning.check()
    }

    @Test func `after a hang both aspects are opened anew, by connections that are younger than the hang`() throws {
      let scripts = Scripts()
      defer { scripts.release() }
      scripts.landscape.state.withLock { $0.hanging = 3 }
      let clock = ManualClock()
      let (_, encoder, initial) = try Self.ready(scripts, clock: clock)
      var turning = initial
      try turning.encode(6, Self.landscape)
      try turning.encode(2, Self.portrait)
      #expect(turning.stream.profiles.last == Self.fallbackProfile)
      clock.advance(by: RetryBackOff.shortest)
      // The thread that hangs is still there.
      for (size, script) in [(Self.portrait, scripts.portrait), (Self.landscape, scripts.landscape)] {
        let before = encoder.counters.recoveries
        #expect(
          try eventually {
            try turning.encode(1, size, keyFrame: true)
            return encoder.counters.recoveries == before + 1
          })
        #expect(turning.stream.profiles.last == Self.hardwareProfile)
        #expect(script.state.withLock { $0.opened } == 2)
      }
      encoder.stop()
      // Those that are younger than the hang are ended, the others are not spoken to.
      #expect(eventually { scripts.portrait.state.withLock { $0.stopped } == 1 })
      #expect(eventually { scripts.landscape.state.withLock { $0.stopped } == 1 })
      scripts.release()
      #expect(eventually { scripts.landscape.state.withLock { $0.stopped } == 2 })
      try turning.check()
    }

    @Test func `hardware that fails while the other one hangs is not opened again`() throws {
      let scripts = Scripts()
      defer { scripts.release() }
      scripts.landscape.state.withLock { $0.failing = [1] }
      scripts.portrait.state.withLock { $0.hanging = 0 }
      let (_, encoder, initial) = try Self.ready(scripts)
      var turning = initial
      try turning.encode(2, Self.landscape)
      // It is opened again in vain, 1 s and 3 s after its failure; the next attempt would be 4 s later, and the hang is noted
      // before.
      scripts.landscape.state.withLock { $0.refusesToOpen = true }
      #expect(eventually { scripts.landscape.state.withLock { $0.opened } == 2 })
      try turning.encode(2, Self.portrait)
      let opened = scripts.landscape.state.withLock { $0.opened }
      scripts.landscape.state.withLock { $0.refusesToOpen = false }
      usleep(6_000_000)
      for _ in 0..<3 { try turning.encode(2, Self.landscape, keyFrame: true) }
      #expect(encoder.counters.recoveries == 0)
      #expect(scripts.landscape.state.withLock { $0.opened } == opened)
      #expect(scripts.landscape.state.withLock { $0.pictures } == 2)
      encoder.stop()
      try turning.check()
    }

    @Test func `without a standby the former encoder ends, on hardware too`() throws {
      let scripts = Scripts()
      var policy = Self.policy()
      policy.keepsStandby = false
      let (selection, encoder) = try Self.select(scripts, policy: policy)
      #expect(selection.explanation == "x264 takes over when needed")
      var turning = try TurningStream(encoder)
      try turning.encode(3, Self.landscape)
      try turning.encode(3, Self.portrait)
      #expect(eventually { scripts.landscape.state.withLock { $0.stopped } == 1 })
      try turning.encode(3, Self.landscape)
      #expect(eventually { scripts.portrait.state.withLock { $0.stopped } == 1 })
      #expect(Set(turning.stream.profiles) == [Self.hardwareProfile])
      encoder.stop()
      #expect(eventually { scripts.landscape.state.withLock { ($0.opened, $0.stopped) } == (2, 2) })
      #expect(eventually { scripts.portrait.state.withLock { ($0.opened, $0.stopped) } == (1, 1) })
      try turning.check()
    }

    @Test func `hardware for one aspect alone leaves the other to x264`() throws {
      let scripts = Scripts()
      scripts.portrait.state.withLock { $0.refusesToOpen = true }
      let (events, encoder, initial) = try Self.ready(scripts)
      var turning = initial
      for _ in 0..<3 {
        try turning.encode(2, Self.landscape)
        try turning.encode(2, Self.portrait)
      }
      #expect(
        turning.stream.profiles
          == [0, 1, 2].flatMap { _ in [Self.hardwareProfile, Self.fallbackProfile] })
      let told = try #require(events.take().first)
      guard case .standbyWithoutHardware(Self.portrait, .call, Duration(seconds: 1)?) = told else {
        Issue.record("\(told)")
        return
      }
      #expect(told.description.hasPrefix("240x320 is encoded in software"))
      // It goes on to be tried, however the picture is rotated, with growing pauses.
      #expect(eventually(within: 60) { scripts.portrait.state.withLock { $0.opened } >= 3 })
      #expect(scripts.landscape.state.withLock { $0.opened } == 1)
      scripts.portrait.state.withLock { $0.refusesToOpen = false }
      #expect(
        try eventually(within: 120) {
          try turning.encode(1, Self.landscape)
          try turning.encode(1, Self.portrait)
          return encoder.counters.recoveries == 1
        })
      #expect(turning.stream.profiles.last == Self.hardwareProfile)
      #expect(encoder.counters.failovers == 0 && encoder.counters.hangs == 0)
      encoder.stop()
      #expect(eventually { scripts.portrait.state.withLock { $0.stopped } == 1 })
      try turning.check()
    }

    @Test(arguments: [EncoderChoice.auto, .vaapi])
    func `hardware that lacks one aspect is not tried again by itself`(choice: EncoderChoice) throws {
      let scripts = Scripts()
      scripts.portrait.state.withLock { $0.hasLimit = true }
      let (selection, encoder) = try Self.select(scripts, choice)
      var turning = try TurningStream(encoder)
      try turning.encode(2, Self.landscape)
      if choice == .auto { try turning.encode(2, Self.portrait) }
      #expect(eventually { scripts.portrait.state.withLock { $0.opened } == 1 })
      let events = try #require(selection.events)
      var told: [EncoderEvent] = []
      #expect(
        eventually {
          told += events.take()
          return !told.isEmpty
        })
      usleep(2_500_000)
      #expect(scripts.portrait.state.withLock { $0.opened } == 1)
      told += events.take()
      #expect(told.count == 1, "\(told)")
      switch told.first {
      case .standbyWithoutHardware(Self.portrait, _, retry: nil)?, .standbyFailed(Self.portrait, _)?: break
      default: Issue.record("\(told)")
      }
      encoder.stop()
      try turning.check()
    }

    @Test func `hardware alone reports that the picture cannot rotate`() throws {
      let scripts = Scripts()
      scripts.portrait.state.withLock { $0.refusesToOpen = true }
      let (selection, encoder) = try Self.select(scripts, .vaapi)
      var turning = try TurningStream(encoder)
      try turning.encode(2, Self.landscape)
      #expect(throws: EncoderError.self) { try turning.encode(1, Self.portrait) }
      try turning.encode(2, Self.landscape)
      let lines = try #require(selection.events).take().map(\.description)
      #expect(lines.count == 1 && lines[0].hasPrefix("no standby encoder for 240x320: "))
      encoder.stop()
      try turning.check()
    }

    @Test func `a change of bitrate reaches the hardware of both aspects`() throws {
      let scripts = Scripts()
      let (_, encoder, initial) = try Self.ready(scripts)
      var turning = initial
      try turning.encode(2, Self.landscape)
      try encoder.change(bitrate: 300_000, frameRate: .thirty)
      try turning.encode(2, Self.portrait)
      try turning.encode(2, Self.landscape)
      #expect(scripts.landscape.state.withLock { $0.changes } == [300_000])
      #expect(scripts.portrait.state.withLock { $0.changes } == [300_000])
      encoder.stop()
      try turning.check()
    }

    @Test func `x264 without hardware rotates too`() throws {
      let selection = try EncoderSelector.select(.x264, Self.configuration, aspects: .both)
      #expect(selection.explanation == nil)
      #expect(selection.events != nil)
      var turning = try TurningStream(selection.encoder)
      for turn in 0..<4 { try turning.encode(2, turn.isMultiple(of: 2) ? Self.landscape : Self.portrait) }
      selection.encoder.stop()
      try turning.check()
    }
  }
#endif
