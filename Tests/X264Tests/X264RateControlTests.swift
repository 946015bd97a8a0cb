#if X264
  import Foundation
  import Media
  import Platform
  import TestSupport
  import Testing
  import X264

  @Suite struct X264RateControlTests {
    private static let size = PictureSize(width: 320, height: 192)

    private static func configuration(
      _ rateControl: RateControl = .constantBitrate, bitrate: Int = 400_000, slices: Int = 1, threads: Int = 1,
      lookahead: Int = 0, preset: String = "veryfast", profile: H264Profile = .main
    ) -> EncoderConfiguration {
      EncoderConfiguration(
        size: size, frameRate: .thirty, bitrate: bitrate, color: .bt709, profile: profile, rateControl: rateControl,
        slices: slices, threads: threads, lookahead: lookahead, x264Preset: preset)
    }

    private static func record(
      _ encoder: X264Encoder, _ scene: Scene, _ range: Range<Int>, into recording: inout Recording,
      isKey: (Int) -> Bool = { $0 == 0 }
    ) throws {
      let pool = try FramePool(size: size)
      for index in range {
        try encoder.encode(scene.frame(index, from: pool), keyFrame: isKey(index)) { recording.add($0) }
      }
    }

    @Test(arguments: [(0, "veryfast"), (0, "ultrafast"), (12, "veryfast")])
    func `a variable bitrate is kept on average, also after a change`(lookahead: Int, preset: String) throws {
      let scene = try Scene(size: Self.size, frames: 120)
      let encoder = try X264Encoder(Self.configuration(.variableBitrate, lookahead: lookahead, preset: preset))
      var recording = Recording()
      var first = 0
      for (bitrate, rate) in [(400_000, 30.0), (1_000_000, 30), (300_000, 15)] {
        try encoder.change(bitrate: bitrate, frameRate: #require(FrameRate(UInt32(rate))))
        let count = Int(rate * 20)
        try Self.record(encoder, scene, first..<first + count, into: &recording) { $0.isMultiple(of: 60) }
        first += count
        // The first eight seconds are for the rate factor to find its place.
        let pictures = recording.pictures.suffix(Int(rate * 12))
        let reached = Double(pictures.map(\.bytes).reduce(0, +)) * 8 / 12 / Double(bitrate)
        #expect((0.8...1.2).contains(reached), "\(reached) of \(bitrate) bit/s at \(rate) frames a second")
        // The peak: no second has more than that of the bitrate, and what the buffer holds.
        let peak = Double(bitrate) * (EncoderConfiguration.peakFactor + 0.5)
        let sizes = pictures.map { Double($0.bytes * 8) }
        for start in 0..<sizes.count - Int(rate) {
          #expect(sizes[start..<start + Int(rate)].reduce(0, +) <= peak * 1.1)
        }
      }
      try encoder.flush { recording.add($0) }
      #expect(recording.pictures.count == first)
      #expect(recording.keys.allSatisfy { $0.isMultiple(of: 60) })
    }

    @Test(arguments: [1, 20, 35, 51])
    func `a constant quantizer is that of every slice, and a lower one is better`(quantizer: Int) throws {
      let scene = try Scene(size: Self.size, frames: 6)
      let encoder = try X264Encoder(Self.configuration(.constantQuantizer(quantizer), profile: .baseline))
      var recording = Recording()
      try Self.record(encoder, scene, 0..<6, into: &recording) { $0.isMultiple(of: 3) }
      let directory = try TemporaryDirectory()
      try recording.stream.write(to: directory.url.appendingPathComponent("s.h264"))
      // ffmpeg's own reading of every slice header.
      let headers = try TracedHeaders(path: directory.path("s.h264"), in: directory)
      let initial = try #require(headers.values(of: "pic_init_qp_minus26").first) + 26
      let deltas = headers.values(of: "slice_qp_delta")
      #expect(deltas.count == 6)
      #expect(deltas.allSatisfy { initial + $0 == quantizer }, "\(initial) \(deltas)")
      let luma = try recording.luma(against: scene)
      #expect(luma.allSatisfy { $0 > (quantizer <= 20 ? 38 : 18) }, "\(luma)")
    }

    @Test(arguments: [(1, 1, 1), (4, 1, 4), (12, 1, 12), (1, 2, 2), (6, 2, 6), (4, 3, 6)])
    func `a picture has its slices`(slices: Int, threads: Int, expected: Int) throws {
      let scene = try Scene(size: Self.size, frames: 8)
      let encoder = try X264Encoder(Self.configuration(slices: slices, threads: threads))
      try encoder.prepare()
      var recording = Recording()
      try Self.record(encoder, scene, 0..<8, into: &recording)
      #expect(recording.slices == Array(repeating: expected, count: 8))
      let probe = try recording.probe()
      #expect(probe.complaints.isEmpty && probe.frames == 8, "\(probe)")
    }

    @Test(arguments: [(1, false), (10, true), (60, false), (60, true)])
    func `a lookahead gives every picture back with its own times`(lookahead: Int, prepare: Bool) throws {
      let scene = try Scene(size: Self.size, frames: 30)
      let encoder = try X264Encoder(Self.configuration(lookahead: lookahead))
      if prepare { try encoder.prepare() }
      let sets = encoder.parameterSets
      var recording = Recording()
      try Self.record(encoder, scene, 0..<150, into: &recording) { $0.isMultiple(of: 50) }
      #expect(recording.pictures.count == 150 - lookahead)
      try encoder.flush { recording.add($0) }
      #expect(recording.pictures.count == 150)
      try encoder.flush { _ in Issue.record("twice") }
      // Frames may follow; the first of them is a key frame.
      try Self.record(encoder, scene, 150..<240, into: &recording) { $0 == 200 }
      #expect(recording.pictures.count == 240 - lookahead)
      try encoder.flush { recording.add($0) }
      #expect(recording.pictures.count == 240)
      #expect(recording.keys == [0, 50, 100, 150, 200])
      for (index, picture) in recording.pictures.enumerated() {
        #expect(picture.timestamp == Instant.zero + FrameRate.thirty.time(ofFrame: Int64(index)))
        #expect(picture.captured == picture.timestamp)
      }
      #expect(encoder.parameterSets == sets)
      let probe = try recording.probe()
      #expect(probe.complaints.isEmpty && probe.frames == 240, "\(probe)")
      #expect(probe.values["has_b_frames"] == "0")
      // Every picture is the one that its time says, not its neighbour.
      let luma = try recording.luma(against: scene)
      #expect(luma.count == 240 && luma.allSatisfy { $0 > 25 })
    }

    @Test(arguments: [0, 3, 10, 11])
    func `a prepared lookahead that is flushed early is none the worse`(count: Int) throws {
      let scene = try Scene(size: Self.size, frames: 30)
      let encoder = try X264Encoder(Self.configuration(lookahead: 10))
      try encoder.prepare()
      var recording = Recording()
      try Self.record(encoder, scene, 0..<count, into: &recording)
      try encoder.flush { recording.add($0) }
      #expect(recording.pictures.count == count)
      try Self.record(encoder, scene, count..<30, into: &recording) { _ in false }
      try encoder.flush { recording.add($0) }
      #expect(recording.keys == (count == 0 ? [0] : [0, count]))
      let luma = try recording.luma(against: scene)
      #expect(luma.count == 30 && luma.allSatisfy { $0 > 25 }, "\(luma)")
    }

    @Test(arguments: [(16, 16), (18, 34), (322, 182), (1918, 1078), (1920, 1080)])
    func `every size that is taken comes back as it was`(width: Int, height: Int) throws {
      let size = PictureSize(width: width, height: height)
      let scene = try Scene(size: size, frames: 3, noise: 0)
      var configuration = Self.configuration(.constantQuantizer(20), threads: 2)
      configuration.size = size
      let encoder = try X264Encoder(configuration)
      try encoder.prepare()
      let pool = try FramePool(size: size)
      var recording = Recording()
      for index in 0..<3 {
        try encoder.encode(scene.frame(index, from: pool), keyFrame: false) { recording.add($0) }
      }
      let set = try SequenceParameterSet(nalUnit: encoder.parameterSets.sequence)
      #expect(set.size == size)
      let luma = try recording.luma(against: scene)
      #expect(luma.count == 3 && luma.allSatisfy { $0 > 38 }, "\(luma)")
    }

    @Test func `a change that is refused changes nothing`() throws {
      let scene = try Scene(size: Self.size, frames: 2)
      let encoder = try X264Encoder(Self.configuration())
      let before = encoder.configuration
      for (bitrate, rate) in [(0, UInt32(30)), (-1, 30), (49_999, 30), (Int.max, 30), (400_000, 1000)] {
        let frameRate = try #require(FrameRate(rate))
        #expect(throws: EncoderError.self) { try encoder.change(bitrate: bitrate, frameRate: frameRate) }
        #expect(encoder.configuration == before)
      }
      var recording = Recording()
      try Self.record(encoder, scene, 0..<2, into: &recording)
      #expect(recording.pictures.count == 2)
      encoder.stop()
      #expect(throws: EncoderError.self) { try encoder.change(bitrate: 400_000, frameRate: .thirty) }
      #expect(throws: EncoderError.self) { try encoder.flush { _ in Issue.record("delivered") } }
    }

    @Test(arguments: [(50_000, UInt32(1), UInt32(10)), (400_000_000, 240, 1), (50_000, 240, 1), (400_000_000, 1, 10)])
    func `the ends of the ranges are taken, at once and later`(bitrate: Int, rate: UInt32, seconds: UInt32) throws {
      let scene = try Scene(size: Self.size, frames: 4)
      let frameRate = try #require(FrameRate(rate, seconds))
      for rateControl in [RateControl.constantBitrate, .variableBitrate] {
        var configuration = Self.configuration(rateControl)
        let changed = try X264Encoder(configuration)
        configuration.bitrate = bitrate
        configuration.frameRate = frameRate
        let opened = try X264Encoder(configuration)
        try changed.change(bitrate: bitrate, frameRate: frameRate)
        for encoder in [changed, opened] {
          var recording = Recording()
          try Self.record(encoder, scene, 0..<4, into: &recording)
          #expect(try recording.luma(against: scene).count == 4)
        }
      }
    }
  }
#endif
