#if X265
  import Foundation
  import Media
  import Platform
  import TestSupport
  import Testing
  import X265

  import Encoding

  /// HEVC by the encoders that one stream has in turn.
  @Suite struct HEVCLineupTests {
    private static let landscape = TurningStream.landscape
    private static let portrait = TurningStream.portrait

    private static func configuration(preset: String = "ultrafast") -> EncoderConfiguration {
      var settings = EncoderPreset.activeTranscoding.settings
      settings.codec = .hevc
      settings.x264Preset = preset
      return settings.configuration(
        size: landscape, frameRate: .thirty, bitrate: 500_000, color: .bt709, processors: 8)
    }

    private static func select(_ aspects: EncoderAspects, keepsStandby: Bool = true) throws -> any VideoEncoder {
      var policy = EncoderLineup.Policy()
      policy.keepsStandby = keepsStandby
      return try EncoderSelector.select(.x265, configuration(), policy: policy, aspects: aspects).encoder
    }

    @Test(arguments: [true, false])
    func `twenty rotations are one stream, without a missing picture`(keepsStandby: Bool) throws {
      let encoder = try Self.select(.both, keepsStandby: keepsStandby)
      var turning = try TurningStream(encoder)
      for turn in 0...20 {
        let size = turn.isMultiple(of: 2) ? Self.landscape : Self.portrait
        try turning.encode(3 + turn % 3, size)
        #expect(try HEVCSequenceParameterSet(nalUnit: encoder.parameterSets.sequence).size == size)
      }
      #expect(turning.stream.keyFrames == [0] + turning.turns)
      #expect(encoder.counters.switches == 20)
      encoder.stop()
      try turning.check()
    }

    @Test func `another preset, another size and other colours come from another encoder, and none is missing`() throws
    {
      let encoder = try Self.select(.scaled)
      var turning = try TurningStream(encoder)
      try turning.encode(3, Self.landscape)
      let small = PictureSize(width: 160, height: 120)
      for (restrictions, isDone) in [
        (
          EncoderRestrictions(effort: EncoderSelector.effort(ofPreset: "veryfast")),
          { encoder.namedPreset == "veryfast" }
        ),
        (EncoderRestrictions(maximumSize: small), { encoder.configuration.size == small }),
        (EncoderRestrictions(color: .jpeg), { encoder.configuration.color == .jpeg }),
      ] as [(EncoderRestrictions, () -> Bool)] {
        encoder.restrict(restrictions)
        for _ in 0..<2000 where !isDone() {
          // A greater effort begins at a key frame that is due.
          try turning.encode(1, encoder.frameSize(for: Self.landscape), keyFrame: true)
          usleep(5000)
        }
        #expect(isDone())
        try turning.encode(3, encoder.frameSize(for: Self.landscape))
      }
      #expect(encoder.counters.adaptations == 3)
      encoder.stop()
      try turning.check()
    }

    @Test func `without hardware HEVC is encoded by x265, and it is said why`() throws {
      let reason = "no VA-API: /dev/null is not a render node: choose one of /dev/dri/renderD128 to renderD191"
      for (choice, explanation) in [(EncoderChoice.auto, reason), (.x265, nil)] {
        let selection = try EncoderSelector.select(choice, Self.configuration(), node: "/dev/null")
        #expect(selection.encoder.name.hasPrefix("x265"))
        #expect(selection.encoder.parameterSets.codec == .hevc)
        #expect(selection.explanation == explanation)
        selection.encoder.stop()
      }
    }

    /// A preset of either library has the same name, and so the same step of the effort.
    @Test func `presets have what the encoders can make, and the same names`() throws {
      #expect(X265Encoder.presets == EncoderSelector.x264Presets)
      for preset in EncoderPreset.allCases {
        var settings = preset.settings
        settings.codec = .hevc
        let configuration = settings.configuration(
          size: PictureSize(width: 320, height: 240), frameRate: .thirty, color: .bt709, processors: 8)
        let encoder = try X265Encoder(configuration)
        #expect(encoder.configuration.codec == .hevc)
        encoder.stop()
      }
    }

    @Test(arguments: [
      (EncoderChoice.x264, VideoCodec.hevc, "x265 or auto"), (.camera, .hevc, "x265 or auto"),
      (.x265, .h264, "x264 or auto"),
    ])
    func `an encoder of another codec is refused with the one to choose`(
      choice: EncoderChoice, codec: VideoCodec, words: String
    ) throws {
      var configuration = Self.configuration()
      configuration.codec = codec
      let error = #expect(throws: EncoderError.self) { try EncoderSelector.select(choice, configuration) }
      #expect(error?.kind == .usage && error?.description.contains(words) == true, "\(error as Any)")
    }
  }
#endif
