#if X264
  import Media
  import Platform
  import Synchronization
  import TestSupport
  import Testing
  import X264

  import Encoding

  /// Hardware that is told another quality level while it encodes.
  @Suite struct HardwareLevelTests {
    private static let size = TurningStream.landscape

    /// A lineup on scripted hardware with seven levels, which begins with the fourth.
    private static func encoder(_ script: ScriptedHardware.Script, aspects: EncoderAspects = .scaled) throws
      -> EncoderLineup
    {
      script.state.withLock { $0.levels = 7 }
      var policy = EncoderLineup.Policy()
      // A machine that is busy with something else is no hang.
      policy.hangLimit = 100
      policy.openingLimit = Duration(seconds: 60)
      let configuration = EncoderConfiguration(
        size: size, frameRate: .thirty, bitrate: 500_000, color: .bt709, x264Preset: "superfast", vaapiQuality: 4)
      let encoder = try EncoderLineup(
        configuration, library: "scripted", policy: policy, aspects: aspects,
        software: { configuration throws(EncoderError) in try X264Encoder(configuration) },
        hardware: { configuration throws(EncoderError) in try ScriptedHardware(configuration, script) })
      try encoder.prepare()
      return encoder
    }

    /// The level of the last picture, as others see it.
    private static func level(_ encoder: EncoderLineup) -> Int? { encoder.makers.levels.levels?.present }

    @Test func `the level changes in the encoder at work, and software is not touched`() throws {
      let script = ScriptedHardware.Script()
      let encoder = try Self.encoder(script)
      var turning = try TurningStream(encoder)
      #expect(encoder.makers.levels.levels == nil)
      try turning.encode(3, Self.size)
      #expect(eventually { encoder.makers.levels.levels == QualityLevels(count: 7, present: 4) })
      for level in [5, 2] {
        encoder.restrict(EncoderRestrictions(effort: EncoderSelector.effort(ofPreset: "veryfast"), vaapiQuality: level))
        try turning.encode(3, encoder.frameSize(for: Self.size))
        #expect(eventually { Self.level(encoder) == level })
        #expect(encoder.configuration.vaapiQuality == level)
      }
      encoder.restrict(EncoderRestrictions())
      try turning.encode(1, encoder.frameSize(for: Self.size))
      let state = script.state.withLock { $0 }
      #expect(state.opened == 1 && state.requestedLevels == [5, 2, 4])
      #expect(state.pictureLevels == [4, 4, 4, 5, 5, 5, 2, 2, 2, 4])
      #expect(encoder.counters.adaptations == 3 && encoder.counters.failovers == 0)
      #expect(encoder.events.take().isEmpty)
      encoder.stop()
      try turning.check()
    }

    @Test func `a level that the driver refuses comes from another encoder, and no picture is missing`() throws {
      let script = ScriptedHardware.Script()
      script.state.withLock { $0.refusesLevels = true }
      let encoder = try Self.encoder(script)
      var turning = try TurningStream(encoder)
      try turning.encode(3, Self.size)
      // A faster one takes over as soon as it is there, a better one with a key frame.
      for (level, keyFrame) in [(6, false), (3, true)] {
        encoder.restrict(EncoderRestrictions(vaapiQuality: level))
        #expect(
          try eventually {
            try turning.encode(1, encoder.frameSize(for: Self.size), keyFrame: keyFrame)
            return Self.level(encoder) == level
          })
        try turning.encode(3, encoder.frameSize(for: Self.size))
        #expect(encoder.configuration.vaapiQuality == level)
      }
      let state = script.state.withLock { $0 }
      #expect(state.openedLevels == [4, 6, 3])
      // The second time it is not asked any more.
      #expect(state.requestedLevels == [6])
      #expect(encoder.makers.levels.isFixed && encoder.counters.failovers == 0)
      #expect(encoder.events.take().isEmpty)
      encoder.stop()
      try turning.check()
    }

    @Test func `software does not take over for a level that hardware refuses`() throws {
      let script = ScriptedHardware.Script()
      script.state.withLock { $0.refusesLevels = true }
      let encoder = try Self.encoder(script)
      var turning = try TurningStream(encoder)
      try turning.encode(3, Self.size)
      // No second encoder on the driver.
      script.state.withLock { $0.hasLimit = true }
      encoder.restrict(EncoderRestrictions(vaapiQuality: 6))
      #expect(
        try eventually {
          try turning.encode(1, encoder.frameSize(for: Self.size), keyFrame: true)
          return encoder.isStandbyReady
        })
      try turning.encode(5, encoder.frameSize(for: Self.size), keyFrame: true)
      #expect(encoder.name == "scripted hardware" && Self.level(encoder) == 4)
      encoder.stop()
      try turning.check()
    }

    @Test func `hardware that is opened again has the level that was requested last`() throws {
      let script = ScriptedHardware.Script()
      script.state.withLock { $0.failing = [4] }
      let encoder = try Self.encoder(script)
      var turning = try TurningStream(encoder)
      try turning.encode(3, Self.size)
      encoder.restrict(EncoderRestrictions(vaapiQuality: 6))
      try turning.encode(3, encoder.frameSize(for: Self.size))
      #expect(encoder.counters.failovers == 1)
      #expect(
        try eventually {
          try turning.encode(1, encoder.frameSize(for: Self.size), keyFrame: true)
          return encoder.counters.recoveries == 1
        })
      let state = script.state.withLock { $0 }
      #expect(state.openedLevels == [4, 6] && state.requestedLevels == [6])
      let last = state.pictureLevels.last ?? nil
      #expect(last == 6)
      encoder.stop()
      try turning.check()
    }

    @Test func `a level that hardware refuses after it was opened again comes from another encoder too`() throws {
      let script = ScriptedHardware.Script()
      script.state.withLock { $0.refusesLevels = true }
      let encoder = try Self.encoder(script)
      var turning = try TurningStream(encoder)
      try turning.encode(3, Self.size)
      encoder.restrict(EncoderRestrictions(vaapiQuality: 6))
      try #require(
        try eventually {
          try turning.encode(1, encoder.frameSize(for: Self.size), keyFrame: true)
          return Self.level(encoder) == 6
        })
      script.state.withLock { $0.failing = [$0.pictures] }
      try turning.encode(1, encoder.frameSize(for: Self.size))
      try #require(encoder.counters.failovers == 1)
      // Opened, and software still encodes: the request meets an encoder that has refused nothing yet.
      try #require(eventually { encoder.active.driver?.ready != nil })
      encoder.restrict(EncoderRestrictions(vaapiQuality: 3))
      #expect(
        try eventually {
          try turning.encode(1, encoder.frameSize(for: Self.size), keyFrame: true)
          return Self.level(encoder) == 3
        })
      let state = script.state.withLock { $0 }
      #expect(state.openedLevels == [4, 6, 6, 3] && state.requestedLevels == [6, 3])
      encoder.stop()
      try turning.check()
    }

    @Test func `the encoder of the other orientation has the same level`() throws {
      let script = ScriptedHardware.Script()
      let encoder = try Self.encoder(script, aspects: .both)
      var turning = try TurningStream(encoder)
      try turning.encode(3, Self.size)
      #expect(eventually { encoder.isStandbyReady })
      encoder.restrict(EncoderRestrictions(vaapiQuality: 6))
      try turning.encode(1, encoder.frameSize(for: Self.size))
      try turning.encode(2, encoder.frameSize(for: TurningStream.portrait))
      let state = script.state.withLock { $0 }
      #expect(state.opened == 2 && state.pictureLevels == [4, 4, 4, 6, 6, 6])
      encoder.stop()
      try turning.check()
    }
  }
#endif
