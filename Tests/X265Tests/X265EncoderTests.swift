#if X265
  import Foundation
  import Media
  import Platform
  import TestSupport
  import Testing
  import X265

  @Suite struct X265EncoderTests {
    private static let size = PictureSize(width: 640, height: 360)
    /// The size of what is encoded again and again; `make check-long` has the larger one.
    private static let smallSize = runsLong ? size : PictureSize(width: 320, height: 180)

    private static func configuration(
      bitrate: Int = 1_000_000, size: PictureSize = size, color: ColorDescription = .bt709,
      rateControl: RateControl = .constantBitrate, preset: String = "ultrafast", frameRate: FrameRate = .thirty
    ) -> EncoderConfiguration {
      EncoderConfiguration(
        size: size, frameRate: frameRate, bitrate: bitrate, color: color, rateControl: rateControl, x264Preset: preset,
        codec: .hevc)
    }

    /// A moving gradient, with colours that differ from place to place.
    private static func frame(_ index: Int, from pool: FramePool, size: PictureSize = size) throws -> Frame {
      let frame = try pool.frame(at: Instant.zero + FrameRate.thirty.time(ofFrame: Int64(index)))
      let planes = frame.planes
      for y in 0..<size.height {
        for x in 0..<size.width {
          planes.luma[y * planes.lumaStride + x] = UInt8(16 + (x + y * 2 + index * 5) % 220)
        }
      }
      for y in 0..<size.height / 2 {
        for x in 0..<size.width / 2 {
          planes.chroma[y * planes.chromaStride + x * 2] = UInt8(64 + x * 128 / size.width)
          planes.chroma[y * planes.chromaStride + x * 2 + 1] = UInt8(192 - y * 128 / size.height)
        }
      }
      return frame
    }

    private static func encode(
      _ configuration: EncoderConfiguration, count: Int, prepare: Bool = false, isKey: (Int) -> Bool
    ) throws -> CodedStream {
      let pool = try FramePool(size: configuration.size)
      let encoder = try X265Encoder(configuration)
      if prepare {
        try encoder.prepare()
        try encoder.prepare()
      }
      var coded = try CodedStream()
      for index in 0..<count {
        try encoder.encode(frame(index, from: pool, size: configuration.size), keyFrame: isKey(index)) {
          coded.add($0, index)
        }
      }
      try encoder.flush { _ in Issue.record("x265 holds nothing back") }
      return coded
    }

    @Test(arguments: X265Encoder.presets)
    func `every frame in is an access unit out, and ffmpeg decodes each`(preset: String) throws {
      let count = preset.hasPrefix("slow") || preset == "veryslow" ? 12 : 32
      // Small, for the slowest presets.
      let size = runsLong ? PictureSize(width: 416, height: 240) : PictureSize(width: 208, height: 120)
      let result = try Self.encode(Self.configuration(size: size, preset: preset), count: count) { $0 % 10 == 0 }
      #expect(result.keys == Array(stride(from: 0, to: count, by: 10)))
      #expect(result.types.count == count)
      for (index, types) in result.types.enumerated() {
        let isKey = result.keys.contains(index)
        let sets: [HEVCNALUnitType] = [.videoParameterSet, .sequenceParameterSet, .pictureParameterSet]
        #expect(types == (isKey ? sets + [.idrNLP] : [.trailR]))
        #expect(result.timestamps[index] == Instant.zero + FrameRate.thirty.time(ofFrame: Int64(index)))
      }
      let probe = try result.probe()
      #expect(probe.complaints.isEmpty, "\(probe.complaints)")
      for (name, value) in [
        ("codec_name", "hevc"), ("profile", "Main"), ("width", "\(size.width)"), ("height", "\(size.height)"),
        ("has_b_frames", "0"), ("r_frame_rate", "30/1"), ("nb_read_frames", "\(count)"),
      ] {
        #expect(probe.values[name] == value, "\(name)")
      }
    }

    /// Sizes below x265's usual coding unit, with and without a rest of one, and a narrow one.
    @Test(arguments: [(18, 16), (32, 32), (18, 200), (32, 200), (34, 18), (62, 66), (130, 98), (642, 362)])
    func `a picture of any size has its samples`(width: Int, height: Int) throws {
      let size = PictureSize(width: width, height: height)
      let coded = try Self.encode(
        Self.configuration(size: size, rateControl: .constantQuantizer(2), preset: "superfast"), count: 4
      ) { $0 == 0 }
      let samples = [UInt8](try coded.decoded())
      let bytes = size.pixels * 3 / 2
      try #require(samples.count == 4 * bytes)
      let pool = try FramePool(size: size)
      for index in 0..<4 {
        let frame = try Self.frame(index, from: pool, size: size)
        let (planes, start) = (frame.planes, index * bytes)
        var error = 0
        for y in 0..<height {
          for x in 0..<width {
            error = max(error, abs(Int(samples[start + y * width + x]) - Int(planes.luma[y * planes.lumaStride + x])))
          }
        }
        for plane in 0..<2 {
          for y in 0..<height / 2 {
            for x in 0..<width / 2 {
              let sample = samples[start + size.pixels + plane * size.pixels / 4 + y * width / 2 + x]
              error = max(error, abs(Int(sample) - Int(planes.chroma[y * planes.chromaStride + x * 2 + plane])))
            }
          }
        }
        // A sample of another plane or place differs by far more.
        #expect(error <= 16, "picture \(index)")
      }
    }

    /// x265 codes one column of coding tree blocks wrongly by chance.
    @Test(arguments: ["ultrafast", "superfast", "medium"], [18, 32, 34, 64, 66])
    func `a coding tree block is narrower than the picture`(preset: String, width: Int) throws {
      for height in [16, 64, 200] {
        let size = PictureSize(width: width, height: height)
        let encoder = try X265Encoder(Self.configuration(size: size, preset: preset))
        let sequence = try HEVCSequenceParameterSet(nalUnit: encoder.parameterSets.sequence)
        #expect(sequence.codingTreeBlock < width)
      }
    }

    @Test(arguments: [ColorDescription.bt709, .smpte170M, .jpeg])
    func `the colours that a frame has are the colours that ffprobe names`(color: ColorDescription) throws {
      let result = try Self.encode(Self.configuration(color: color), count: 2) { $0 == 0 }
      let values = try result.probe().values
      let names = ["color_range", "color_space", "color_transfer", "color_primaries"].map { values[$0] }
      let expected: [String] =
        switch color {
        case .bt709: ["tv", "bt709", "bt709", "bt709"]
        case .smpte170M: ["tv", "smpte170m", "smpte170m", "smpte170m"]
        default: ["pc", "smpte170m", "iec61966-2-1", "bt709"]
        }
      #expect(names == expected)
    }

    /// Levels of table A.8 for the coded size, the rate and the bitrate; ffprobe has thirty times the level. The preset ultrafast
    /// codes 640x360 as 640x368, which is too much for level 2.1 at 32 frames a second, and 1304x752 as 1312x752.
    @Test(arguments: [
      (640, 360, UInt32(30), 1_000_000, 63), (640, 360, 30, 5_000_000, 90), (1280, 720, 30, 3_000_000, 93),
      (1280, 720, 30, 11_000_000, 120), (320, 240, 30, 500_000, 60), (640, 360, 32, 1_000_000, 90),
      (1304, 752, 30, 3_000_000, 120),
    ])
    func `the level suffices for size and bitrate, and is no greater`(
      width: Int, height: Int, rate: UInt32, bitrate: Int, level: Int
    ) throws {
      let size = PictureSize(width: width, height: height)
      let configuration = Self.configuration(bitrate: bitrate, size: size, frameRate: try #require(FrameRate(rate)))
      let coded = try Self.encode(configuration, count: 2) { $0 == 0 }
      #expect(try coded.probe().values["level"] == "\(level)")
    }

    @Test func `no frame bursts more than the buffer, and the bitrate is kept`() throws {
      let pool = try FramePool(size: Self.size)
      let bitrate = 500_000
      let encoder = try X265Encoder(Self.configuration(bitrate: bitrate))
      var coded = try CodedStream()
      var generator = SystemRandomNumberGenerator()
      for index in 0..<90 {
        let frame = try Self.frame(index, from: pool)
        // Noise: the worst that a camera in the dark delivers, which begins in mid-stream.
        if index >= 20 {
          for offset in stride(from: 0, to: 360 * frame.planes.lumaStride, by: 8) {
            frame.planes.luma[offset] = UInt8.random(in: 16...235, using: &generator)
          }
        }
        try encoder.encode(frame, keyFrame: index == 0) { coded.add($0, index) }
      }
      #expect(coded.sizes.count == 90)
      #expect(coded.sizes.allSatisfy { $0 * 8 <= bitrate / 2 * 11 / 10 })
      // Three seconds of stream plus what the buffer holds.
      #expect(coded.sizes.reduce(0, +) * 8 <= bitrate * 3 + bitrate / 2 + bitrate / 4)
      let probe = try coded.probe()
      #expect(probe.complaints.isEmpty, "\(probe.complaints)")
      #expect(probe.frames == 90)
    }

    /// Noise after a flat picture, and a small buffer: the picture is encoded again, and the stream stays whole.
    @Test func `a picture that is larger than the buffer is encoded again, and every picture decodes`() throws {
      let pool = try FramePool(size: Self.size)
      var configuration = Self.configuration(bitrate: 400_000)
      configuration.bufferSeconds = 0.2
      let encoder = try X265Encoder(configuration)
      var coded = try CodedStream()
      var generator = SeededGenerator(seed: 1)
      for index in 0..<12 {
        let frame = try pool.frame(at: Instant.zero + FrameRate.thirty.time(ofFrame: Int64(index)))
        for offset in 0..<360 * frame.planes.lumaStride {
          frame.planes.luma[offset] = index < 6 ? 90 : UInt8.random(in: 60...180, using: &generator)
        }
        try encoder.encode(frame, keyFrame: index == 0) { coded.add($0, index) }
      }
      #expect(encoder.counters.overflows > 0)
      #expect(coded.keys.contains(6), "\(coded.keys)")
      #expect(coded.sizes.count == 12)
      let probe = try coded.probe()
      #expect(probe.complaints.isEmpty, "\(probe.complaints)")
      #expect(probe.frames == 12)
    }

    /// Six seconds at each rate in one stream: what a person at the control does, and what a camera in the dark makes the
    /// encode stage do.
    @Test func `bitrate and frame rate change without a key frame, and are kept`() throws {
      let pool = try FramePool(size: Self.size)
      let encoder = try X265Encoder(Self.configuration(bitrate: 300_000))
      let sets = encoder.parameterSets
      var generator = SystemRandomNumberGenerator()
      var index = 0
      var keys: [Int] = []
      let changes = [(300_000, 30.0), (300_000, 7.5), (600_000, 15), (200_000, 30), (1_200_000, 30), (300_000, 30)]
      for (bitrate, rate) in changes {
        let frameRate = try #require(FrameRate(UInt32(rate * 2), 2))
        try encoder.change(bitrate: bitrate, frameRate: frameRate)
        #expect(encoder.configuration.bitrate == bitrate && encoder.configuration.frameRate == frameRate)
        var bytes = 0
        // The first two seconds are for rate control to settle.
        for position in 0..<Int(6 * rate) {
          let frame = try pool.frame(at: Instant(seconds: Double(index)))
          for offset in stride(from: 0, to: 360 * frame.planes.lumaStride, by: 64) {
            frame.planes.luma[offset] = UInt8.random(in: 16...235, using: &generator)
          }
          try encoder.encode(frame, keyFrame: index == 0) { unit in
            if unit.isKeyFrame { keys.append(index) }
            if Double(position) >= 2 * rate { bytes += unit.payloadBytes }
          }
          index += 1
        }
        let reached = Double(bytes) * 8 / 4 / Double(bitrate)
        #expect((0.75...1.25).contains(reached), "\(reached) of \(bitrate) bit/s at \(rate) frames a second")
      }
      #expect(keys == [0])
      #expect(encoder.parameterSets == sets)
    }

    @Test(arguments: [RateControl.constantBitrate, .constantQuantizer(30)], ["ultrafast", "veryfast"])
    func `a prepared encoder makes exactly the stream of a fresh one`(rateControl: RateControl, preset: String) throws {
      let configuration = Self.configuration(size: Self.smallSize, rateControl: rateControl, preset: preset)
      let fresh = try Self.encode(configuration, count: 20) { $0 == 10 }
      let prepared = try Self.encode(configuration, count: 20, prepare: true) { $0 == 10 }
      #expect(prepared.keys == [0, 10])
      #expect(try prepared.decoded() == fresh.decoded())
    }

    @Test func `an encoder in use needs no preparation, and preparation gives no key frame`() throws {
      let pool = try FramePool(size: Self.size)
      let encoder = try X265Encoder(Self.configuration())
      var coded = try CodedStream()
      for index in 0..<3 {
        try encoder.encode(Self.frame(index, from: pool), keyFrame: index == 0) { coded.add($0, index) }
        try encoder.prepare()
      }
      #expect(coded.keys == [0])
      encoder.stop()
      #expect(throws: EncoderError.self) { try encoder.prepare() }
    }

    /// x265 fills tables of the process while it opens; and each of these presets has coding units of another size.
    @Test func `encoders that are opened, used and closed at once do not disturb each other`() async throws {
      let presets = ["ultrafast", "veryfast", "medium"]
      let expected = try presets.map { preset in
        try Self.encode(Self.configuration(size: Self.smallSize, preset: preset), count: 8) { $0 == 0 }.decoded()
      }
      try await withThrowingTaskGroup(of: Void.self) { group in
        for round in 0..<12 {
          group.addTask {
            let configuration = Self.configuration(size: Self.smallSize, preset: presets[round % 3])
            let coded = try Self.encode(configuration, count: 8) { $0 == 0 }
            #expect(try coded.decoded() == expected[round % 3], "\(presets[round % 3])")
          }
        }
        try await group.waitForAll()
      }
    }

    @Test func `timestamps that stand still or go back do no harm`() throws {
      let pool = try FramePool(size: Self.size)
      let encoder = try X265Encoder(Self.configuration())
      var count = 0
      for seconds in [5.0, 5, 4.9, 5, 6] {
        let time = Instant(seconds: seconds)
        try encoder.encode(pool.frame(at: time), keyFrame: count == 0) { unit in
          #expect(unit.timestamp == time)
          count += 1
        }
      }
      #expect(count == 5)
    }

    @Test func `after stop nothing is encoded, and stop may come twice`() throws {
      let pool = try FramePool(size: Self.size)
      let encoder = try X265Encoder(Self.configuration())
      encoder.stop()
      encoder.stop()
      let frame = try Self.frame(0, from: pool)
      #expect(throws: EncoderError.self) {
        try encoder.encode(frame, keyFrame: true) { _ in Issue.record("delivered") }
      }
    }

    @Test func `a frame of another size is refused`() throws {
      let pool = try FramePool(size: PictureSize(width: 320, height: 180))
      let encoder = try X265Encoder(Self.configuration())
      let frame = try pool.frame()
      #expect(throws: EncoderError.self) { try encoder.encode(frame, keyFrame: true) { _ in } }
    }

    @Test func `settings that x265 cannot obey are refused with the reason`() {
      var wrong: [(EncoderConfiguration, String)] = []
      func add(_ text: String, _ change: (inout EncoderConfiguration) -> Void) {
        var configuration = Self.configuration()
        change(&configuration)
        wrong.append((configuration, text))
      }
      add("even") { $0.size = PictureSize(width: 641, height: 360) }
      add("a width of 18 or more") { $0.size = PictureSize(width: 16, height: 200) }
      add("50k") { $0.bitrate = 49_999 }
      add("HEVC") { $0.codec = .h264 }
      add("preset 'warp'") { $0.x264Preset = "warp" }
      add("--slices") { $0.slices = 2 }
      add("--slice-size") { $0.sliceBytes = 1000 }
      add("--intra-refresh") { $0.refreshFrames = 30 }
      add("--lookahead") { $0.lookahead = 4 }
      for (configuration, text) in wrong {
        let error = #expect(throws: EncoderError.self) { try X265Encoder(configuration) }
        #expect(error?.kind == .usage && error?.description.contains(text) == true, "\(text): \(error as Any)")
      }
    }
  }
#endif
