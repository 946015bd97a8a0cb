#if X264
  import Media
  import Platform
  import Synchronization
  import TestSupport
  import Testing
  import X264

  import Encoding

  /// One stream of a camera's own pictures and of those that are encoded here.
  @Suite struct PassThroughTests {
    /// A camera that codes, the encoder behind it, and what comes out.
    private final class Rig {
      let clip: CameraClip
      let encoder: PassThroughEncoder
      let link: PassThrough
      let requests = Requests()
      private let pool: FramePool
      private(set) var stream = CodedStream()
      /// The number of the next coded picture, and of the next frame.
      var number: UInt64 = 7
      private var time = 0

      /// The requests to the camera.
      final class Requests: Sendable {
        let list = Mutex<[PassThrough.Request]>([])
        var keyFrames: Int { list.withLock { $0.count { $0 == .keyFrame } } }
      }

      init(_ options: [String] = [], profile: H264Profile = .high, lookahead: Int = 0) throws {
        clip = try CameraClip(options)
        pool = try FramePool(size: CameraClip.size)
        var configuration = EncoderConfiguration(
          size: CameraClip.size, frameRate: .thirty, bitrate: 500_000, color: .bt709)
        configuration.lookahead = lookahead
        let other = try X264Encoder(configuration)
        try other.prepare()
        link = PassThrough { [requests] request in requests.list.withLock { $0.append(request) } }
        encoder = PassThroughEncoder(other, size: CameraClip.size, profile: profile, link: link)
      }

      private func next() -> Instant {
        defer { time += 1 }
        return .zero + FrameRate.thirty.time(ofFrame: Int64(time))
      }

      /// Hands picture `index` of the clip on. Returns how many pictures came out.
      @discardableResult func pass(_ index: Int, keyFrame: Bool = false) throws -> Int {
        let before = stream.timestamps.count
        try clip.pictures[index % clip.pictures.count].withUnsafeBytes { bytes in
          var frame = try pool.frame(at: next())
          frame.coded = CameraCodedPicture(bytes: bytes, number: number)
          number += 1
          try take(frame, keyFrame)
        }
        return stream.timestamps.count - before
      }

      /// Encodes a frame of samples.
      func encode(keyFrame: Bool = false) throws { try take(try pool.frame(at: next()), keyFrame) }

      private func take(_ frame: borrowing Frame, _ keyFrame: Bool) throws {
        var delivered = stream
        try encoder.encode(frame, keyFrame: keyFrame) { delivered.append($0) }
        stream = delivered
      }

      func finish() throws {
        var delivered = stream
        try encoder.flush { delivered.append($0) }
        stream = delivered
        #expect(try stream.decodedCount() == stream.timestamps.count)
        #expect(stream.timestamps == stream.timestamps.sorted())
      }
    }

    @Test(arguments: [0, 10])
    func `the camera's pictures and the encoder's are one stream, each from a key frame on`(lookahead: Int) throws {
      let rig = try Rig(lookahead: lookahead)
      #expect(rig.requests.list.withLock { $0 } == [.bitrate(500_000)])
      for round in 0..<4 {
        for index in 0..<12 { #expect(try rig.pass(index) >= 1) }
        #expect(rig.encoder.name == "the camera's own H.264")
        for _ in 0..<5 { try rig.encode() }
        #expect(rig.encoder.name.hasPrefix("x264"), "\(round)")
        // Another opening of the camera, with other numbers.
        rig.number += 1000
      }
      try rig.finish()
      #expect(rig.stream.timestamps.count == 4 * 17)
      #expect(rig.encoder.counters.handovers == 8 && rig.encoder.counters.passed == 48)
      #expect(rig.encoder.counters.undecodable == 0)
      if lookahead == 0 {
        #expect(rig.stream.keyFrames == (0..<4).flatMap { round in [0, 10, 12].map { round * 17 + $0 } })
      }
    }

    @Test func `after a lost picture nothing passes until a key frame, which the camera is asked for`() throws {
      let rig = try Rig()
      for index in 0..<3 { try rig.pass(index) }
      rig.number += 1
      for index in 4..<10 { #expect(try rig.pass(index) == 0) }
      #expect(rig.requests.keyFrames == 1)
      #expect(rig.encoder.counters.undecodable == 6)
      for index in 10..<14 { #expect(try rig.pass(index) == 1) }
      try rig.finish()
    }

    @Test func `a key frame that is due is requested, twice a second at most, until it comes`() throws {
      let rig = try Rig(["-g", "300"])
      try rig.pass(0)
      for index in 1..<20 { #expect(try rig.pass(index, keyFrame: true) == 1) }
      #expect(rig.requests.keyFrames == 2)
      #expect(rig.link.refusal == nil)
    }

    @Test func `a camera without a key frame for ten seconds is refused`() throws {
      let rig = try Rig(["-g", "300"])
      for _ in 0..<301 { #expect(try rig.pass(5) == 0) }
      #expect(rig.link.refusal == nil)
      try rig.pass(5)
      #expect(rig.link.refusal == "the camera sent no key frame for 10 seconds")
    }

    @Test func `a stream that cannot pass is refused with its reason, and the encoder goes on`() throws {
      let rig = try Rig(["-profile:v", "main"], profile: .baseline)
      #expect(try rig.pass(0) == 0)
      #expect(
        rig.link.refusal == "the camera's own H.264 cannot be passed on: its profile is main, and viewers may have "
          + "baseline only: choose --profile main if all of yours have it")
      for _ in 0..<3 { try rig.encode() }
      try rig.finish()
      #expect(rig.stream.timestamps.count == 3)
    }

    @Test func `a changed bitrate goes to the camera too`() throws {
      let rig = try Rig()
      try rig.encoder.change(bitrate: 800_000, frameRate: .thirty)
      try rig.encoder.change(bitrate: 800_000, frameRate: .thirty)
      #expect(rig.requests.list.withLock { $0 } == [.bitrate(500_000), .bitrate(800_000)])
    }
  }
#endif
