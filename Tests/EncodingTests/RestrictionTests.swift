#if X264
  import Foundation
  import Media
  import Platform
  import Synchronization
  import TestSupport
  import Testing
  import X264

  import Encoding

  /// Encoders that are told to do with less while they run.
  @Suite struct RestrictionTests {
    private static let landscape = TurningStream.landscape
    private static let portrait = TurningStream.portrait
    private static let small = EncoderRestrictions(maximumSize: PictureSize(width: 160, height: 120))

    private static func configuration(preset: String = "ultrafast", lookahead: Int = 0) -> EncoderConfiguration {
      EncoderConfiguration(
        size: landscape, frameRate: .thirty, bitrate: 500_000, color: .bt709, lookahead: lookahead, x264Preset: preset)
    }

    private static func encoder(
      _ configuration: EncoderConfiguration = configuration(), log: EncoderLog = EncoderLog(), keepsStandby: Bool = true
    ) throws -> EncoderLineup {
      var policy = EncoderLineup.Policy()
      policy.keepsStandby = keepsStandby
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

    /// Encodes frames of the size that the encoder wants of pictures of `size`, until that is `wanted`.
    private static func encode(
      _ turning: inout TurningStream, _ size: PictureSize, until wanted: PictureSize
    ) throws {
      for _ in 0..<2000 {
        let now = turning.encoder.frameSize(for: size)
        try turning.encode(1, now)
        if now == wanted { return }
        usleep(5000)
      }
      Issue.record("the encoder never became one of \(wanted)")
    }

    @Test(arguments: [true, false], [0, 8])
    func `smaller pictures come from another encoder once it is ready, and none is missing`(
      keepsStandby: Bool, lookahead: Int
    ) throws {
      let log = EncoderLog()
      let configuration = Self.configuration(preset: lookahead > 0 ? "superfast" : "ultrafast", lookahead: lookahead)
      let encoder = try Self.encoder(configuration, log: log, keepsStandby: keepsStandby)
      var turning = try TurningStream(encoder)
      try turning.encode(5, Self.landscape)
      log.state.withLock { $0.isClosed = true }
      encoder.restrict(Self.small)
      // Until it is ready, pictures stay as large as they were.
      for _ in 0..<5 {
        #expect(encoder.frameSize(for: Self.landscape) == Self.landscape)
        try turning.encode(1, Self.landscape)
      }
      log.state.withLock { $0.isClosed = false }
      try Self.encode(&turning, Self.landscape, until: PictureSize(width: 160, height: 120))
      try turning.encode(5, encoder.frameSize(for: Self.landscape))
      // And it rotates.
      #expect(encoder.frameSize(for: Self.portrait) == PictureSize(width: 120, height: 160))
      try turning.encode(5, encoder.frameSize(for: Self.portrait))
      encoder.restrict(EncoderRestrictions())
      try Self.encode(&turning, Self.portrait, until: Self.portrait)
      try turning.encode(5, encoder.frameSize(for: Self.portrait))
      try turning.encode(5, encoder.frameSize(for: Self.landscape))
      try turning.flush()
      #expect(Set(turning.stream.keyFrames).isSuperset(of: [0] + turning.turns))
      #expect(encoder.counters.adaptations == 2)
      #expect(encoder.counters.switches == 2)
      #expect(encoder.events.take().isEmpty)
      encoder.stop()
      try turning.check()
    }

    @Test(arguments: [true, false])
    func `other colours come from another encoder, rotated or not, and none is missing`(keepsStandby: Bool) throws {
      let encoder = try Self.encoder(keepsStandby: keepsStandby)
      var turning = try TurningStream(encoder)
      try turning.encode(5, Self.landscape)
      encoder.restrict(EncoderRestrictions(color: .jpeg))
      for _ in 0..<2000 where encoder.configuration.color != .jpeg {
        try turning.encode(1, encoder.frameSize(for: Self.landscape))
        usleep(5000)
      }
      let change = turning.next - 1
      try turning.encode(3, Self.landscape)
      try turning.encode(3, encoder.frameSize(for: Self.portrait))
      #expect(encoder.counters.adaptations == 1 && encoder.counters.switches == 1)
      encoder.stop()
      try turning.check()
      let ranges = try turning.stream.decodedRanges()
      #expect(ranges == (0..<turning.next).map { $0 < change ? "tv" : "pc" })
    }

    @Test func `a rotation while the smaller encoder is prepared goes to the smaller size`() throws {
      let log = EncoderLog()
      let encoder = try Self.encoder(log: log)
      var turning = try TurningStream(encoder)
      try turning.encode(3, Self.landscape)
      encoder.restrict(Self.small)
      try turning.encode(3, encoder.frameSize(for: Self.portrait))
      #expect(turning.sizes.last == PictureSize(width: 120, height: 160))
      try Self.encode(&turning, Self.landscape, until: PictureSize(width: 160, height: 120))
      #expect(encoder.counters.adaptations == 1)
      encoder.stop()
      try turning.check()
    }

    @Test func `asked for and taken back at once, nothing changes`() throws {
      let encoder = try Self.encoder()
      var turning = try TurningStream(encoder)
      try turning.encode(3, Self.landscape)
      for _ in 0..<20 {
        encoder.restrict(Self.small)
        encoder.restrict(EncoderRestrictions())
      }
      for _ in 0..<20 { try turning.encode(1, encoder.frameSize(for: Self.landscape)) }
      try turning.encode(3, encoder.frameSize(for: Self.portrait))
      #expect(turning.sizes.last == Self.portrait)
      #expect(encoder.counters.adaptations == 0)
      encoder.stop()
      try turning.check()
    }

    @Test func `if no smaller encoder can be made, the stream continues unchanged`() throws {
      let log = EncoderLog()
      let encoder = try Self.encoder(log: log, keepsStandby: false)
      var turning = try TurningStream(encoder)
      log.state.withLock { $0.fails = true }
      encoder.restrict(Self.small)
      for _ in 0..<40 {
        try turning.encode(1, encoder.frameSize(for: Self.landscape))
        usleep(5000)
      }
      #expect(Set(turning.sizes) == [Self.landscape])
      #expect(eventually { !encoder.events.take().isEmpty })
      encoder.stop()
      try turning.check()
    }

    @Test func `x264 takes a cheaper preset while it runs, and the better one again`() throws {
      let log = EncoderLog()
      let encoder = try Self.encoder(Self.configuration(preset: "fast"), log: log)
      var turning = try TurningStream(encoder)
      try turning.encode(5, Self.landscape)
      let sets = encoder.parameterSets
      for preset in ["superfast", "veryfast", nil] {
        encoder.restrict(EncoderRestrictions(effort: preset.flatMap(EncoderSelector.effort)))
        try turning.encode(5, encoder.frameSize(for: Self.landscape))
        #expect(encoder.name.contains(preset ?? "fast"))
      }
      #expect(encoder.parameterSets == sets)
      #expect(turning.stream.keyFrames == [0])
      #expect(encoder.counters.adaptations == 3)
      // The standby has followed: a rotation makes no other encoder.
      try turning.encode(5, encoder.frameSize(for: Self.portrait))
      #expect(encoder.name.contains("fast"))
      encoder.stop()
      try turning.check()
    }

    @Test func `to and from ultrafast goes by way of another encoder`() throws {
      let log = EncoderLog()
      let encoder = try Self.encoder(Self.configuration(preset: "veryfast"), log: log)
      var turning = try TurningStream(encoder)
      try turning.encode(3, Self.landscape)
      encoder.restrict(EncoderRestrictions(effort: EncoderSelector.effort(ofPreset: "ultrafast")))
      #expect(
        try eventually {
          try turning.encode(1, encoder.frameSize(for: Self.landscape))
          return encoder.name.contains("ultrafast")
        })
      try turning.encode(3, Self.landscape)
      // A better picture is not urgent: it begins with the next key frame.
      encoder.restrict(EncoderRestrictions())
      #expect(eventually { encoder.isStandbyReady })
      try turning.encode(3, encoder.frameSize(for: Self.landscape))
      #expect(encoder.name.contains("ultrafast"))
      try turning.encode(3, encoder.frameSize(for: Self.landscape), keyFrame: true)
      #expect(encoder.name.contains("veryfast"))
      #expect(turning.stream.keyFrames.count == 3)
      encoder.stop()
      try turning.check()
    }

    /// As many bits as the preset makes of the same pictures, so what x264 was told it obeys.
    @Test func `a preset that was changed to is the one that it was opened with`() throws {
      func bytes(opened: String, changedTo preset: String?) throws -> Int {
        var configuration = Self.configuration(preset: opened)
        configuration.rateControl = .constantQuantizer(26)
        let encoder = try X264Encoder(configuration)
        try encoder.prepare()
        if let preset { #expect(try encoder.change(effort: EncoderSelector.effort(ofPreset: preset))) }
        let pool = try FramePool(size: Self.landscape)
        var bytes = 0
        for index in 0..<30 {
          let frame = try pool.frame(at: Instant.zero + FrameRate.thirty.time(ofFrame: Int64(index)))
          let planes = frame.planes
          for row in 0..<Self.landscape.height {
            for column in 0..<Self.landscape.width {
              let (x, y) = (Double(column + index * 3), Double(row - index))
              planes.luma[row * planes.lumaStride + column] = UInt8(128 + 50 * sin(x / 9) + 50 * cos(y / 7 + x / 31))
            }
          }
          try encoder.encode(frame, keyFrame: false) { bytes += $0.payloadBytes }
        }
        encoder.stop()
        return bytes
      }
      let (fast, superfast) = (
        try bytes(opened: "medium", changedTo: nil), try bytes(opened: "medium", changedTo: "superfast")
      )
      #expect(fast != superfast)
      #expect(try bytes(opened: "medium", changedTo: "medium") == fast)
    }

    @Test(arguments: [("ultrafast", "superfast"), ("veryfast", "ultrafast"), ("superfast", "medium"), ("fast", "no")])
    func `a running x264 refuses a change of effort that it does not support`(opened: String, wanted: String) throws {
      let encoder = try X264Encoder(Self.configuration(preset: opened))
      let effort = EncoderSelector.effort(ofPreset: wanted) ?? EncodingEffort(rawValue: 99)
      #expect(try !encoder.change(effort: effort))
      #expect(encoder.configuration.effort == nil && encoder.name.contains(opened))
      encoder.stop()
      #expect(throws: EncoderError.self) { try encoder.change(effort: EncoderSelector.effort(ofPreset: "superfast")) }
    }
  }
#endif
