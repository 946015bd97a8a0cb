#if X264
  import Foundation
  import Media
  import Platform
  import Synchronization
  import TestSupport
  import Testing
  import X264

  /// Slices that are delivered one by one.
  @Suite struct SliceStreamingTests {
    private static let size = PictureSize(width: 320, height: 192)

    private static func configuration(
      _ rateControl: RateControl = .constantBitrate, slices: Int = 4, threads: Int = 1, streams: Bool = true,
      lookahead: Int = 0
    ) -> EncoderConfiguration {
      EncoderConfiguration(
        size: size, frameRate: .thirty, bitrate: 400_000, color: .bt709, rateControl: rateControl, bufferSeconds: 0.1,
        slices: slices, threads: threads, lookahead: lookahead, streamsSlices: streams)
    }

    private static func record(
      _ configuration: EncoderConfiguration, _ scene: Scene, frames: Int, prepares: Bool = false
    ) throws -> Recording {
      let encoder = try X264Encoder(configuration)
      if prepares { try encoder.prepare() }
      let pool = try FramePool(size: size)
      var recording = Recording()
      for index in 0..<frames {
        try encoder.encode(scene.frame(index, from: pool), keyFrame: index.isMultiple(of: 10)) { recording.add($0) }
        #expect(recording.pictures.count == index + 1)
        #expect(recording.pictures.last?.isWhole == true)
      }
      try encoder.flush { recording.add($0) }
      return recording
    }

    @Test(arguments: [(4, 1), (12, 1), (4, 2), (6, 3)])
    func `the parts of a picture are what it is as a whole`(slices: Int, threads: Int) throws {
      let scene = try Scene(size: Self.size, frames: 25)
      // Start codes count as bits: with a fixed quantizer they change nothing.
      let whole = try Self.record(
        Self.configuration(.constantQuantizer(28), slices: slices, threads: threads, streams: false), scene, frames: 25)
      let parts = try Self.record(
        Self.configuration(.constantQuantizer(28), slices: slices, threads: threads), scene, frames: 25)
      #expect(parts.stream == whole.stream)
      #expect(parts.keys == [0, 10, 20])
      #expect(whole.pictures.allSatisfy { $0.parts == 1 })
      #expect(parts.slices == whole.slices && parts.slices[0] >= slices)
      if threads == 1 {
        #expect(parts.pictures.allSatisfy { $0.parts == slices })
      } else {
        // A slice that is ready before its turn comes with the one before it.
        #expect(parts.pictures.allSatisfy { $0.parts <= parts.slices[0] })
        #expect(parts.pictures.contains { $0.parts > 1 })
      }
      for (index, picture) in parts.pictures.enumerated() {
        #expect(picture.timestamp == Instant.zero + FrameRate.thirty.time(ofFrame: Int64(index)))
        #expect(
          picture.types.starts(
            with: picture.isKeyFrame ? [.sequenceParameterSet, .pictureParameterSet, .idrSlice] : [.nonIDRSlice]))
      }
    }

    @Test(arguments: [(4, 1, RateControl.constantBitrate), (4, 2, .constantBitrate), (4, 2, .variableBitrate)])
    func `ffmpeg decodes them, and the bitrate is kept`(slices: Int, threads: Int, rateControl: RateControl) throws {
      let scene = try Scene(size: Self.size, frames: 120)
      let recording = try Self.record(
        Self.configuration(rateControl, slices: slices, threads: threads), scene, frames: 240, prepares: true)
      let probe = try recording.probe()
      #expect(probe.complaints.isEmpty && probe.frames == 240, "\(probe)")
      #expect(try recording.luma(against: scene).allSatisfy { $0 > 20 })
      let reached = Double(recording.pictures.suffix(150).map(\.bytes).reduce(0, +)) * 8 / 5
      #expect((0.7...1.3).contains(reached / 400_000), "\(reached) bit/s")
    }

    @Test(arguments: [(500, 1, H264Profile.baseline), (1172, 1, .main), (1172, 2, .baseline), (300, 3, .high)])
    func `slices have the size that was asked for`(bytes: Int, threads: Int, profile: H264Profile) throws {
      let size = PictureSize(width: 640, height: 360)
      let scene = try Scene(size: size, frames: 30)
      var configuration = Self.configuration(slices: 1, threads: threads)
      configuration.size = size
      configuration.bitrate = 3_000_000
      configuration.bufferSeconds = 0.5
      configuration.profile = profile
      configuration.x264Preset = profile == .baseline ? "ultrafast" : "veryfast"
      configuration.sliceBytes = bytes
      let encoder = try X264Encoder(configuration)
      try encoder.prepare()
      let pool = try FramePool(size: size)
      var recording = Recording()
      var largest = 0
      for index in 0..<60 {
        try encoder.encode(scene.frame(index, from: pool), keyFrame: index.isMultiple(of: 30)) { unit in
          recording.add(unit)
          largest = unit.nalUnits.reduce(largest) { max($0, $1.bytes.count) }
        }
      }
      #expect(largest <= bytes && largest > bytes * 3 / 4, "\(largest)")
      #expect(recording.slices.max() ?? 0 > 8 && recording.pictures.allSatisfy { $0.parts <= 18 && $0.isWhole })
      #expect(recording.keys == [0, 30])
      // ffmpeg warns of more than 32 slices and decodes them all the same.
      let luma = try recording.luma(against: scene)
      #expect(luma.count == 60 && luma.allSatisfy { $0 > 25 }, "\(luma)")
    }

    @Test func `the largest picture in the smallest slices still has room`() throws {
      let size = PictureSize(width: 1280, height: 720)
      let scene = try Scene(size: size, frames: 1, noise: 60)
      for streams in [true, false] {
        var configuration = Self.configuration(.constantQuantizer(1), slices: 1, streams: streams)
        configuration.size = size
        configuration.sliceBytes = 100
        let encoder = try X264Encoder(configuration)
        let pool = try FramePool(size: size)
        var recording = Recording()
        try encoder.encode(scene.frame(0, from: pool), keyFrame: true) { recording.add($0) }
        #expect(recording.slices.first ?? 0 > 900 && recording.pictures.first?.isWhole == true)
        #expect(try recording.probe().frames == 1)
      }
    }

    @Test func `the first part comes while the rest is being coded`() throws {
      let size = PictureSize(width: 1280, height: 720)
      let scene = try Scene(size: size, frames: 4)
      var configuration = Self.configuration(slices: 8)
      configuration.size = size
      configuration.bitrate = 4_000_000
      let encoder = try X264Encoder(configuration)
      try encoder.prepare()
      let pool = try FramePool(size: size)
      var shares: [Double] = []
      for index in 0..<20 {
        let frame = try scene.frame(index, from: pool)
        let begin = threadTime()
        var first: Swift.Duration?
        var last = begin
        try encoder.encode(frame, keyFrame: false) { _ in
          last = threadTime()
          if first == nil { first = last }
        }
        shares.append(((first ?? last) - begin) / (last - begin))
      }
      shares.sort()
      // It is about a quarter of the thread's own time; a machine that is busy otherwise moves single ones.
      #expect(shares[shares.count / 2] < 0.8, "\(shares)")
    }

    @Test(arguments: [(1, 1, 0), (4, 1, 5)])
    func `one slice, or a lookahead, gives whole pictures`(slices: Int, threads: Int, lookahead: Int) throws {
      let scene = try Scene(size: Self.size, frames: 10)
      let encoder = try X264Encoder(Self.configuration(slices: slices, threads: threads, lookahead: lookahead))
      let pool = try FramePool(size: Self.size)
      var recording = Recording()
      for index in 0..<10 {
        try encoder.encode(scene.frame(index, from: pool), keyFrame: false) { recording.add($0) }
      }
      try encoder.flush { recording.add($0) }
      #expect(recording.pictures.count == 10)
      #expect(recording.pictures.allSatisfy { $0.parts == 1 && $0.isWhole })
    }

    @Test func `rates change, and the encoder ends, as without`() throws {
      let scene = try Scene(size: Self.size, frames: 10)
      let encoder = try X264Encoder(Self.configuration(slices: 3, threads: 1))
      try encoder.prepare()
      let pool = try FramePool(size: Self.size)
      var recording = Recording()
      for index in 0..<20 {
        if index == 10 { try encoder.change(bitrate: 200_000, frameRate: .thirty) }
        try encoder.encode(scene.frame(index, from: pool), keyFrame: false) { recording.add($0) }
      }
      #expect(recording.keys == [0] && recording.pictures.count == 20)
      encoder.stop()
      let frame = try scene.frame(0, from: pool)
      #expect(throws: EncoderError.self) { try encoder.encode(frame, keyFrame: false) { _ in Issue.record("lent") } }
    }
  }
#endif
