#if X264
  import Media
  import Platform
  import Synchronization
  import TestSupport
  import Testing
  import X264

  import Encoding

  @Suite struct EncoderSelectorTests {
    private static let configuration = EncoderConfiguration(
      size: PictureSize(width: 320, height: 240), frameRate: .thirty, bitrate: 500_000, color: .bt709)

    private static let software: EncoderLineup.MakeSoftware = { configuration throws(EncoderError) in
      try X264Encoder(configuration)
    }

    private static func candidate(_ script: ScriptedHardware.Script) -> EncoderSelector.HardwareCandidate {
      EncoderSelector.HardwareCandidate(library: "scripted") { configuration throws(EncoderError) in
        try ScriptedHardware(configuration, script)
      }
    }

    private static func select(
      _ choice: EncoderChoice, _ scripts: [ScriptedHardware.Script], software: EncoderLineup.MakeSoftware? = software
    ) throws(EncoderError) -> EncoderSelection {
      try EncoderSelector.select(
        choice, configuration, hardware: scripts.map(candidate), policy: EncoderLineup.Policy(), software: software)
    }

    private static func broken() -> ScriptedHardware.Script {
      let script = ScriptedHardware.Script()
      script.state.withLock { $0.refusesToOpen = true }
      return script
    }

    @Test func `the first hardware that works is taken`() throws {
      let working = ScriptedHardware.Script()
      let spare = ScriptedHardware.Script()
      let selection = try Self.select(.auto, [Self.broken(), working, spare])
      #expect(selection.encoder.name == "scripted hardware")
      #expect(selection.explanation == "x264 stands by")
      #expect(spare.state.withLock { $0.opened } == 0)
      selection.encoder.stop()
    }

    @Test(arguments: ["--slice-size", "--intra-refresh"])
    func `an option that only x264 has selects x264, and the reason is reported`(option: String) throws {
      var configuration = Self.configuration
      if option == "--slice-size" { configuration.sliceBytes = 600 } else { configuration.refreshFrames = 30 }
      let selection = try EncoderSelector.select(.auto, configuration, node: "/dev/null")
      #expect(selection.encoder.name.hasPrefix("x264"))
      #expect(selection.explanation?.contains(option) == true, "\(selection.explanation ?? "nothing")")
      selection.encoder.stop()
      #expect(throws: EncoderError.self) {
        try EncoderSelector.select(.vaapi, configuration, node: "/dev/null")
      }
    }

    @Test func `without hardware x264 is taken, and it is said why`() throws {
      let selection = try Self.select(.auto, [Self.broken()])
      #expect(selection.encoder.name.hasPrefix("x264"))
      #expect(selection.explanation == "no VA-API: scripted: open failed: it was told to (code 1)")
      let bare = try Self.select(.auto, [])
      #expect(bare.explanation?.hasPrefix("no VA-API: no render node in /dev/dri") == true)
    }

    @Test func `a request for VA-API alone gives VA-API or the reason`() throws {
      let error = #expect(throws: EncoderError.self) { try Self.select(.vaapi, [Self.broken()]) }
      #expect(error?.description == "scripted: open failed: it was told to (code 1)")
      let selection = try Self.select(.vaapi, [ScriptedHardware.Script()])
      #expect(selection.explanation?.hasPrefix("there is no fallback") == true)
      selection.encoder.stop()
    }

    @Test func `a request for x264 does not open the hardware`() throws {
      let script = ScriptedHardware.Script()
      let selection = try Self.select(.x264, [script])
      #expect(selection.encoder.name.hasPrefix("x264"))
      #expect(selection.explanation == nil)
      #expect(script.state.withLock { $0.opened } == 0)
    }

    @Test func `a driver that hangs blocks as many threads with a second rendition as without it`() throws {
      let script = ScriptedHardware.Script()
      defer { script.release() }
      script.state.withLock { $0.hangsAtOpening = true }
      var policy = EncoderLineup.Policy()
      // A thread that has no processor until the limit is over would not open the driver at all.
      policy.openingLimit = Duration(seconds: 3)
      policy.keepsStandby = false
      let clock = ManualClock()
      func select(health: DriverHealth?) throws -> EncoderSelection {
        try EncoderSelector.select(
          .auto, Self.configuration, hardware: [Self.candidate(script)], policy: policy, aspects: .both, turns: true,
          rotatesInSoftware: true, health: health, clock: clock.now, software: Self.software)
      }
      let first = try select(health: nil)
      defer { first.encoder.stop() }
      let health = try #require(first.health)
      #expect(first.encoder.name.hasPrefix("x264") && script.state.withLock { $0.opened } == 1)
      for round in 0..<6 {
        // Before the back-off is over, the driver is left alone.
        let small = try select(health: health)
        #expect(small.encoder.name.hasPrefix("x264"))
        #expect(small.explanation?.hasPrefix("no VA-API") == true, "\(small.explanation ?? "nothing")")
        small.encoder.stop()
        #expect(script.state.withLock { $0.opened } == min(round + 1, DriverHealth.stuckLimit))
        clock.advance(by: Duration(seconds: 3600))
        try select(health: health).encoder.stop()
        #expect(script.state.withLock { $0.opened } == min(round + 2, DriverHealth.stuckLimit))
      }
    }

    @Test func `software for a second rendition is told of where the first one has hardware`() throws {
      let events = EncoderEvents()
      func open(_ script: ScriptedHardware.Script, isBesideHardware: Bool) throws -> String {
        let encoder = try EncoderSelector.selectSmall(
          .auto, Self.configuration, hardware: [Self.candidate(script)], policy: EncoderLineup.Policy(), health: nil,
          events: events, isBesideHardware: isBesideHardware, software: Self.software)
        defer { encoder.stop() }
        return encoder.name
      }
      #expect(try open(ScriptedHardware.Script(), isBesideHardware: true) == "scripted hardware")
      #expect(try open(Self.broken(), isBesideHardware: false).hasPrefix("x264"))
      #expect(events.take().isEmpty)
      #expect(try open(Self.broken(), isBesideHardware: true).hasPrefix("x264"))
      let told = events.take().map(\.description)
      #expect(
        told.count == 1 && told[0].hasPrefix("320x240 is encoded in software: no VA-API: scripted: open failed"),
        "\(told)")
    }

    @Test func `a build without x264 says so`() throws {
      let error = #expect(throws: EncoderError.self) { try Self.select(.x264, [], software: nil) }
      #expect(error?.description == "this build of nightjar has no x264 (package trait X264)")
    }

    @Test func `an impossible configuration is refused before anything is opened`() throws {
      var configuration = Self.configuration
      configuration.bitrate = 0
      let script = ScriptedHardware.Script()
      #expect(throws: EncoderError.self) {
        try EncoderSelector.select(
          .auto, configuration, hardware: [Self.candidate(script)], policy: EncoderLineup.Policy(),
          software: Self.software)
      }
      #expect(script.state.withLock { $0.opened } == 0)
    }
  }
#endif
