#if X264
  import Capture
  import Encoding
  import Foundation
  import Media
  import Platform
  import RTP
  import SRTP
  import Synchronization
  import TestSupport
  import Testing

  import Streaming

  /// Streams whose viewers' networks are weak and strong again, as a decoder that is not ours reads them.
  @Suite(.serialized) struct RenditionStreamTests {
    private static let size = PictureSize(width: 320, height: 240)

    private static func bytes(_ width: Int, _ height: Int) -> Int { width * height * 3 / 2 }

    @Test func `a viewer whose network is weak gets small pictures and later full ones, and no other viewer notices`()
      throws
    {
      let bench = try RenditionBench(try NoisyCamera(size: Self.size), bitrate: 900_000)
      defer { bench.end() }
      let (weak, strong) = (try NarrowConnection(), try NarrowConnection())
      let (weakID, strongID) = (try bench.admit(weak), try bench.admit(strong))
      try #require(eventually { (bench.figures(weakID)?.frames ?? 0) > 30 })
      #expect(!bench.isSmall(weakID) && bench.pipeline.statistics.smallRendition == nil)
      weak.rate = 150_000
      try #require(eventually { bench.isSmall(weakID) })
      #expect(bench.figures(weakID)?.smallHeight == 120 && !bench.isSmall(strongID))
      try #require(bench.sendsSmall(weakID, 200))
      // The floor is a third, and the other viewer keeps that.
      #expect(bench.pipeline.bitrate >= 300_000)
      weak.rate = nil
      try #require(eventually { !bench.isSmall(weakID) })
      let returned = try #require(bench.figures(weakID)?.frames)
      try #require(eventually { (bench.figures(weakID)?.frames ?? 0) > returned + 60 })
      #expect(eventually { bench.pipeline.bitrate == 900_000 }, "\(bench.pipeline.bitrate)")
      bench.end()

      let figures = bench.pipeline.statistics
      let rendition = try #require(figures.smallRendition)
      #expect(
        rendition.size == PictureSize(width: 160, height: 120) && rendition.openings == 1 && rendition.failure == nil)
      let (weakFigures, strongFigures) = (try #require(bench.figures(weakID)), try #require(bench.figures(strongID)))
      #expect(strongFigures.framesDropped == 0 && strongFigures.lost == 0 && strongFigures.renditionChanges == 0)

      let (weakPictures, strongPictures) = (try ReceivedPictures(weak.packets), try ReceivedPictures(strong.packets))
      for pictures in [weakPictures, strongPictures] {
        #expect(pictures.sources.count == 1 && pictures.repeated == 0 && pictures.damaged == 0)
        #expect(zip(pictures.timestamps, pictures.timestamps.dropFirst()).allSatisfy { $0 < $1 })
      }
      let (weakSizes, strongSizes) = (try weakPictures.sizes(), try strongPictures.sizes())
      let (full, small) = (Self.bytes(320, 240), Self.bytes(160, 120))
      #expect(strongSizes.count == strongPictures.timestamps.count && Set(strongSizes) == [full])
      #expect(weakSizes.count == weakPictures.timestamps.count && Set(weakSizes) == [full, small])
      // Full, small, full; on a busy machine, which shows few limits in a while, with a try between them.
      let changes = zip(weakSizes, weakSizes.dropFirst()).count { $0 != $1 }
      #expect(changes == weakFigures.renditionChanges && changes >= 2, "\(changes), \(weakFigures.renditionChanges)")
      #expect(weakSizes.first == full && weakSizes.last == full)
      #expect(weakSizes.count { $0 == small } >= 200)
      // Both have one clock. Each picture that only the other has was counted: as dropped for the viewer, or before the small
      // encoder. On a starved machine the last small ones of one change may come after the next one.
      let got = Set(weakPictures.rawTimestamps)
      let (first, last) = (
        try #require(strongPictures.rawTimestamps.firstIndex { got.contains($0) }),
        try #require(strongPictures.rawTimestamps.lastIndex { got.contains($0) })
      )
      let missing = strongPictures.rawTimestamps[first...last].count { !got.contains($0) }
      #expect(
        missing <= weakFigures.framesDropped + rendition.dropped + 3,
        "\(missing), \(weakFigures.framesDropped), \(rendition)")
      let all = Set(strongPictures.rawTimestamps)
      #expect(weakPictures.rawTimestamps.drop { !all.contains($0) }.allSatisfy(all.contains))
    }

    @Test(arguments: [false, true])
    func `no number comes twice to a viewer that pauses after its network was weak`(isAlone: Bool) throws {
      let bench = try RenditionBench(try NoisyCamera(size: Self.size), bitrate: 900_000)
      defer { bench.end() }
      let strong = try NarrowConnection()
      if !isAlone { try bench.admit(strong) }
      let place = GuestPlace()
      var packets: [[UInt8]] = []
      for round in 0..<3 {
        let connection = try NarrowConnection()
        let id = try bench.admit(connection, at: place, isReturning: round > 0)
        try #require(eventually { (bench.figures(id)?.frames ?? 0) > 30 })
        if round == 0 {
          connection.rate = 150_000
          try #require(eventually { bench.isSmall(id) })
          let begun = try #require(bench.figures(id)?.frames)
          try #require(eventually { (bench.figures(id)?.frames ?? 0) > begun + 60 })
        }
        _ = bench.pipeline.remove(id)
        try #require(eventually { bench.figures(id) == nil })
        packets += connection.packets
      }
      bench.end()
      let pictures = try ReceivedPictures(packets)
      #expect(pictures.sources.count == 1 && pictures.repeated == 0, "\(pictures.repeated)")
      // One clock, and some pictures of each time.
      #expect(zip(pictures.timestamps, pictures.timestamps.dropFirst()).allSatisfy { $0 < $1 })
      #expect(pictures.timestamps.count > 90)
    }

    @Test func `small pictures rotate as the full ones do`() throws {
      let bench = try RenditionBench(
        try SyntheticCamera(size: Self.size, frameRate: .thirty), bitrate: 600_000)
      defer { bench.end() }
      let weak = try NarrowConnection()
      let id = try bench.admit(weak)
      try #require(eventually { (bench.figures(id)?.frames ?? 0) > 30 })
      weak.rate = 100_000
      try #require(eventually { bench.isSmall(id) })
      // The connection knows what its network takes.
      #expect(weak.transport?.limit != nil)
      let begun = try #require(bench.figures(id)?.frames)
      try #require(eventually { (bench.figures(id)?.frames ?? 0) > begun + 20 })
      bench.pipeline.orient(Orientation(.quarter))
      try #require(bench.sendsSmall(id, 90))
      bench.end()
      let pictures = try ReceivedPictures(weak.packets)
      #expect(pictures.sources.count == 1 && pictures.repeated == 0 && pictures.damaged == 0)
      let sizes = try pictures.sizes()
      // 160x120 and 120x160 have the same bytes.
      #expect(sizes.count == pictures.timestamps.count)
      #expect(Set(sizes) == [Self.bytes(320, 240), Self.bytes(160, 120)] && sizes.last == Self.bytes(160, 120))
    }

    @Test func `a small encoder that cannot be made leaves whole groups to a viewer, and a reason`() throws {
      let attempts = Mutex(0)
      let bench = try RenditionBench(try NoisyCamera(size: Self.size), bitrate: 900_000) { _ in
        attempts.withLock { $0 += 1 }
        throw EncoderError.unavailable("none is left")
      }
      defer { bench.end() }
      let (weak, strong) = (try NarrowConnection(), try NarrowConnection())
      let (id, other) = (try bench.admit(weak), try bench.admit(strong))
      try #require(eventually { (bench.figures(id)?.frames ?? 0) > 30 })
      weak.rate = 100_000
      try #require(eventually { bench.pipeline.statistics.smallRendition?.failure == "none is left" })
      // Without the small one, the bitrate follows the viewer further down.
      #expect(eventually { bench.pipeline.bitrate < 200_000 }, "\(bench.pipeline.bitrate)")
      let begun = try #require(bench.figures(id)?.frames)
      try #require(eventually { (bench.figures(id)?.frames ?? 0) > begun + 30 })
      bench.end()
      #expect(attempts.withLock { $0 } == 1 && bench.figures(id)?.renditionChanges == 0)
      #expect(bench.figures(other)?.framesDropped == 0)
      let pictures = try ReceivedPictures(weak.packets)
      #expect(pictures.repeated == 0 && pictures.damaged == 0)
      let sizes = try pictures.sizes()
      #expect(sizes.count == pictures.timestamps.count && Set(sizes) == [Self.bytes(320, 240)])
    }

    @Test func `a protected stream changes with its only viewer, and never for one of two`() throws {
      let bench = try RenditionBench(try NoisyCamera(size: Self.size), bitrate: 900_000)
      defer { bench.end() }
      let stream = bench.pipeline.reserve(SRTPKey(random: .aes128CounterHMAC80))
      let (weak, strong) = (try NarrowConnection(), try NarrowConnection())
      let id = try bench.admit(weak, stream: stream)
      try #require(eventually { (bench.figures(id)?.frames ?? 0) > 30 })
      weak.rate = 150_000
      try #require(eventually { bench.isSmall(id) })
      let other = try bench.admit(strong, stream: stream)
      try #require(eventually { !bench.isSmall(id) })
      try #require(eventually { (bench.figures(other)?.frames ?? 0) > 150 })
      #expect(!bench.isSmall(id) && !bench.isSmall(other))
      _ = bench.pipeline.remove(other)
      // It is the only one again.
      try #require(eventually { bench.isSmall(id) })
      bench.end()
      // One packet for each number, whatever the rendition: a second one would be a second text under one keystream.
      var seen: [UInt16: [UInt8]] = [:]
      for packet in weak.packets + strong.packets {
        let number = UInt16(packet[2]) << 8 | UInt16(packet[3])
        #expect(seen.updateValue(packet, forKey: number) ?? packet == packet, "\(number)")
      }
      #expect(seen.count > 100)
    }

    @Test func `the small encoder rests once nobody needs it, and comes again`() throws {
      let bench = try RenditionBench(try NoisyCamera(size: Self.size), bitrate: 900_000)
      defer { bench.end() }
      for round in 1...2 {
        let weak = try NarrowConnection()
        weak.rate = 150_000
        let id = try bench.admit(weak)
        try #require(eventually { bench.isSmall(id) })
        #expect(bench.pipeline.statistics.smallRendition?.isRunning == true)
        withExtendedLifetime(weak) { _ = bench.pipeline.remove(id) }
        try #require(eventually { bench.pipeline.statistics.smallRendition?.isRunning == false })
        #expect(bench.pipeline.statistics.smallRendition?.openings == round)
        let frames = bench.pipeline.statistics.smallRendition?.frames
        usleep(200_000)
        #expect(bench.pipeline.statistics.smallRendition?.frames == frames)
      }
    }

    @Test func `a stream without a bitrate to divide, or of tiny pictures, has no small rendition`() throws {
      let queue = try CodedPictureQueue(capacity: 1000)
      func rendition(_ change: (inout EncoderConfiguration) -> Void) -> SmallRendition? {
        var configuration = EncoderConfiguration(size: Self.size, frameRate: .thirty, bitrate: 900_000, color: .bt709)
        change(&configuration)
        return SmallRendition(
          of: configuration, sourceSize: configuration.size, keyFrameInterval: Duration(seconds: 2), heldLimit: 8,
          beside: queue, makeEncoder: RenditionBench.encoder)
      }
      #expect(rendition { _ in }?.configuration.size == PictureSize(width: 160, height: 120))
      #expect(rendition { _ in }?.configuration.bitrate == 300_000)
      #expect(
        rendition { $0.size = PictureSize(width: 1922, height: 1078) }?.configuration.size
          == PictureSize(width: 960, height: 538))
      #expect(rendition { $0.size = PictureSize(width: 64, height: 64) } != nil)
      #expect(rendition { $0.size = PictureSize(width: 62, height: 64) } == nil)
      #expect(rendition { $0.lookahead = 10 } == nil)
      // Full pictures that are restricted to the same size.
      let restricted = try #require(rendition { _ in })
      #expect(restricted.isPossible(at: .now()))
      restricted.follow(size: PictureSize(width: 160, height: 120))
      #expect(!restricted.isPossible(at: .now()))
      restricted.follow(size: Self.size)
      #expect(restricted.isPossible(at: .now()))
      #expect(rendition { $0.rateControl = .constantQuantizer(26) } == nil)
    }
  }
#endif
