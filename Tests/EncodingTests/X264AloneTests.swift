#if X264 && !X265
  import Media
  import Platform
  import Testing
  import X264

  import Encoding

  /// A build with the package trait X264 alone.
  @Suite struct X264AloneTests {
    @Test func `it encodes H.264 in software, and says that it lacks x265`() throws {
      #expect(EncoderSelector.softwareName(for: .h264) == X264Encoder.libraryName)
      #expect(EncoderSelector.softwareName(for: .hevc) == nil)
      #expect(EncoderSelector.x264Presets == X264Encoder.presets)
      var settings = EncoderPreset.liveCapture.settings
      func configuration() -> EncoderConfiguration {
        settings.configuration(
          size: PictureSize(width: 320, height: 240), frameRate: .thirty, bitrate: 500_000, color: .bt709, processors: 1
        )
      }
      let encoder = try EncoderSelector.select(.x264, configuration(), aspects: .both).encoder
      #expect(encoder.name.hasPrefix("x264"))
      encoder.stop()
      settings.codec = .hevc
      for choice in [EncoderChoice.auto, .x265] {
        let error = #expect(throws: EncoderError.self) {
          _ = try EncoderSelector.select(choice, configuration(), aspects: .both)
        }
        #expect(error?.description.contains(EncoderSelector.withoutX265) == true, "\(error as Any)")
      }
    }
  }
#endif
