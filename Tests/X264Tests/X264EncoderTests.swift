#if X264
  import Foundation
  import Media
  import Platform
  import TestSupport
  import Testing
  import X264

  @Suite struct X264EncoderTests {
    private static let size = PictureSize(width: 640, height: 360)

    private static func configuration(
      bitrate: Int = 1_000_000, color: ColorDescription = .bt709, profile: H264Profile = .baseline, threads: Int = 1,
      preset: String = "ultrafast"
    ) -> EncoderConfiguration {
      EncoderConfiguration(
        size: size, frameRate: .thirty, bitrate: bitrate, color: color, profile: profile, threads: threads,
        x264Preset: preset)
    }

    /// A moving gradient, so that there is something to code.
    private static func frame(_ index: Int, from pool: FramePool) throws -> Frame {
      let time = Instant.zero + FrameRate.thirty.time(ofFrame: Int64(index))
      let frame = try pool.frame(at: time)
      let planes = frame.planes
      for y in 0..<size.height {
        for x in 0..<size.width {
          planes.luma[y * planes.lumaStride + x] = UInt8(16 + (x + y * 2 + index * 5) % 220)
        }
      }
      return frame
    }

    /// Encodes `count` frames; key frames where `isKey` says so. Returns the Annex B stream and which were keys.
    private static func encode(
      _ configuration: EncoderConfiguration, count: Int, isKey: (Int) -> Bool
    ) throws -> (stream: Data, keys: [Int], types: [[NALUnitType]]) {
      let pool = try FramePool(size: size)
      let encoder = try X264Encoder(configuration)
      var stream = Data()
      var keys: [Int] = []
      var types: [[NALUnitType]] = []
      for index in 0..<count {
        try encoder.encode(frame(index, from: pool), keyFrame: isKey(index)) { unit in
          if unit.isKeyFrame { keys.append(index) }
          types.append(unit.nalUnits.map(\.type))
          for nalUnit in unit.nalUnits {
            stream.append(contentsOf: AnnexB.startCode)
            stream.append(contentsOf: nalUnit.bytes)
          }
        }
      }
      return (stream, keys, types)
    }

    @Test func `every frame in is an access unit out, and ffmpeg decodes each`() throws {
      let result = try Self.encode(Self.configuration(), count: 40) { $0 % 15 == 0 }
      #expect(result.keys == [0, 15, 30])
      #expect(result.types.count == 40)
      for (index, types) in result.types.enumerated() {
        let isKey = result.keys.contains(index)
        #expect(types.starts(with: isKey ? [.sequenceParameterSet, .pictureParameterSet] : [.nonIDRSlice]))
        #expect(types.contains(.idrSlice) == isKey)
      }
      let probe = try StreamProbe(result.stream)
      #expect(probe.complaints.isEmpty, "\(probe.complaints)")
      for (name, value) in [
        ("profile", "Constrained Baseline"), ("width", "640"), ("height", "360"), ("has_b_frames", "0"),
        ("r_frame_rate", "30/1"), ("nb_read_frames", "40"),
      ] {
        #expect(probe.values[name] == value, "\(name)")
      }
    }

    @Test(arguments: [ColorDescription.bt709, .smpte170M, .jpeg])
    func `the colours that a frame has are the colours that ffprobe names`(color: ColorDescription) throws {
      let directory = try TemporaryDirectory()
      let result = try Self.encode(Self.configuration(color: color), count: 2) { $0 == 0 }
      try result.stream.write(to: directory.url.appendingPathComponent("s.h264"))
      let probe = try Subprocess.run(
        [
          "ffprobe", "-v", "error", "-show_entries", "stream=color_range,color_space,color_transfer,color_primaries",
          "-of", "default=nw=1:nk=1", directory.path("s.h264"),
        ], in: directory)
      let names = probe.outputText.split(separator: "\n").map(String.init)
      let expected: [String] =
        switch color {
        case .bt709: ["tv", "bt709", "bt709", "bt709"]
        case .smpte170M: ["tv", "smpte170m", "smpte170m", "smpte170m"]
        default: ["pc", "smpte170m", "iec61966-2-1", "bt709"]
        }
      #expect(names == expected)
    }

    @Test(arguments: [(H264Profile.main, UInt8(77)), (.high, 100), (.baseline, 66)])
    func `the profile is the one asked for`(profile: H264Profile, identifier: UInt8) throws {
      let encoder = try X264Encoder(Self.configuration(profile: profile, preset: "veryfast"))
      let set = try SequenceParameterSet(nalUnit: encoder.parameterSets.sequence)
      #expect(set.profileIDC == identifier)
      #expect(set.size == Self.size)
      #expect(set.reorderFrames == 0)
      #expect(set.timing?.timeScale == 60 && set.timing?.unitsInTick == 1)
    }

    @Test func `no frame bursts more than the buffer, and the bitrate is kept`() throws {
      let pool = try FramePool(size: Self.size)
      let bitrate = 500_000
      let encoder = try X264Encoder(Self.configuration(bitrate: bitrate))
      var sizes: [Int] = []
      var generator = SystemRandomNumberGenerator()
      for index in 0..<90 {
        let frame = try Self.frame(index, from: pool)
        // Noise: the worst that a camera in the dark delivers.
        for offset in stride(from: 0, to: 360 * frame.planes.lumaStride, by: 8) {
          frame.planes.luma[offset] = UInt8.random(in: 16...235, using: &generator)
        }
        try encoder.encode(frame, keyFrame: index == 0) { sizes.append($0.payloadBytes) }
      }
      #expect(sizes.allSatisfy { $0 * 8 <= bitrate / 2 * 11 / 10 })
      // Three seconds of stream plus what the buffer holds.
      #expect(sizes.reduce(0, +) * 8 <= bitrate * 3 + bitrate / 2 + bitrate / 4)
    }

    /// Five seconds at each rate in one stream: what a person at the control does, and what a camera in the dark makes
    /// the encode stage do.
    @Test func `bitrate and frame rate change without a key frame, and are kept`() throws {
      let pool = try FramePool(size: Self.size)
      let encoder = try X264Encoder(Self.configuration(bitrate: 300_000))
      let sets = encoder.parameterSets
      var generator = SystemRandomNumberGenerator()
      var index = 0
      var keys: [Int] = []
      let changes = [
        (300_000, 30.0), (300_000, 7.5), (600_000, 15), (200_000, 60), (1_200_000, 30), (300_000, 30),
      ]
      for (bitrate, rate) in changes {
        let frameRate = try #require(FrameRate(UInt32(rate * 2), 2))
        try encoder.change(bitrate: bitrate, frameRate: frameRate)
        #expect(encoder.configuration.bitrate == bitrate && encoder.configuration.frameRate == frameRate)
        var bytes = 0
        // The first two seconds are for rate control to settle.
        for position in 0..<Int(6 * rate) {
          let frame = try pool.frame(at: Instant(seconds: Double(index)))
          // Noise in every block, from few random numbers: a debug build draws some ten million a second.
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

    @Test func `threads add slices and nothing is held back`() throws {
      let result = try Self.encode(Self.configuration(threads: 2), count: 10) { $0 == 0 }
      #expect(result.types.count == 10)
      #expect(result.types[1] == [.nonIDRSlice, .nonIDRSlice])
    }

    @Test func `timestamps that stand still or go back do no harm`() throws {
      let pool = try FramePool(size: Self.size)
      let encoder = try X264Encoder(Self.configuration())
      var count = 0
      for seconds in [5.0, 5, 4.9, 5, 6] {
        let time = Instant(seconds: seconds)
        let frame = try pool.frame(at: time)
        try encoder.encode(frame, keyFrame: count == 0) { unit in
          #expect(unit.timestamp == time)
          count += 1
        }
      }
      #expect(count == 5)
    }

    @Test func `after stop nothing is encoded, and stop may come twice`() throws {
      let pool = try FramePool(size: Self.size)
      let encoder = try X264Encoder(Self.configuration())
      encoder.stop()
      encoder.stop()
      let frame = try Self.frame(0, from: pool)
      #expect(throws: EncoderError.self) {
        try encoder.encode(frame, keyFrame: true) { _ in Issue.record("delivered") }
      }
    }

    @Test func `a frame of another size is refused`() throws {
      let pool = try FramePool(size: PictureSize(width: 320, height: 180))
      let encoder = try X264Encoder(Self.configuration())
      let frame = try pool.frame()
      #expect(throws: EncoderError.self) { try encoder.encode(frame, keyFrame: true) { _ in } }
    }

    @Test func `a frame whose rows overlap is refused, and is no mistake in the options`() throws {
      let encoder = try X264Encoder(Self.configuration())
      let memory = UnsafeMutablePointer<UInt8>.allocate(capacity: Self.size.pixels * 3 / 2)
      memory.initialize(repeating: 128, count: Self.size.pixels * 3 / 2)
      defer { memory.deallocate() }
      let width = Self.size.width
      for (luma, chroma) in [(width - 1, width), (width, width - 2), (0, width), (-width, width)] {
        let planes = NV12Planes(
          size: Self.size, luma: memory, lumaStride: luma, chroma: memory + Self.size.pixels, chromaStride: chroma)
        let frame = Frame(
          planes: planes, color: .bt709, timestamp: .zero, captured: .zero, slot: 0, owner: Nobody())
        let error = #expect(throws: EncoderError.self) {
          try encoder.encode(frame, keyFrame: true) { _ in Issue.record("delivered") }
        }
        #expect(
          error?.description
            == "a frame with rows of \(min(luma, chroma)) bytes: its picture needs at least \(width)")
        #expect(error?.kind == .software)
      }
    }

    /// The owner of memory that outlives its frames.
    private final class Nobody: FrameOwner, @unchecked Sendable {
      // Sendable: it has no state.
      override func recycle(slot: Int) {}
    }

    @Test func `impossible settings are refused with the limit in the message`() {
      var wrong: [EncoderConfiguration] = []
      for size in [(0, 0), (641, 360), (640, 361), (20_000, 360), (-640, 360)] {
        var configuration = Self.configuration()
        configuration.size = PictureSize(width: size.0, height: size.1)
        wrong.append(configuration)
      }
      for bitrate in [0, -1, 49_999, Int.max] { wrong.append(Self.configuration(bitrate: bitrate)) }
      for threads in [0, -1, 17] { wrong.append(Self.configuration(threads: threads)) }
      wrong.append(Self.configuration(preset: "warp"))
      for configuration in wrong {
        #expect(throws: EncoderError.self) { try X264Encoder(configuration) }
      }
    }
  }
#endif
