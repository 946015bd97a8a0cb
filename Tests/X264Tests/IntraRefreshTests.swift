#if X264
  import Foundation
  import Media
  import Platform
  import TestSupport
  import Testing
  import X264

  /// Pictures that are refreshed column by column.
  @Suite struct IntraRefreshTests {
    private static let size = PictureSize(width: 320, height: 192)
    private static let cycle = 30

    private static func record(
      _ scene: Scene, refreshes: Bool = true, streamsSlices: Bool = false, keyFrames: Set<Int> = []
    ) throws -> Recording {
      let configuration = EncoderConfiguration(
        size: size, frameRate: .thirty, bitrate: 500_000, color: .bt709, slices: 4, streamsSlices: streamsSlices,
        refreshFrames: refreshes ? cycle : nil)
      let encoder = try X264Encoder(configuration)
      try encoder.prepare()
      let pool = try FramePool(size: size)
      var recording = Recording()
      for index in 0..<scene.count {
        let isKeyFrame = keyFrames.contains(index) || !refreshes && index.isMultiple(of: cycle)
        try encoder.encode(scene.frame(index, from: pool), keyFrame: isKeyFrame) { recording.add($0) }
      }
      return recording
    }

    @Test(arguments: [false, true]) func `no picture bursts, and a decoder may begin with each refresh`(
      streamsSlices: Bool
    ) throws {
      let scene = try Scene(size: Self.size, frames: 150)
      let recording = try Self.record(scene, streamsSlices: streamsSlices)
      #expect(recording.keys == [0])
      let probe = try recording.probe()
      #expect(probe.complaints.isEmpty && probe.frames == 150, "\(probe)")
      // The refreshes: parameter sets, the message that one begins, and slices.
      let starts = recording.pictures.indices.filter {
        recording.pictures[$0].types.starts(
          with: [.sequenceParameterSet, .pictureParameterSet, .supplementalEnhancementInformation, .nonIDRSlice])
      }
      #expect(starts.count >= 3 && zip(starts, starts.dropFirst()).allSatisfy { $1 - $0 <= Self.cycle }, "\(starts)")
      // The same by key frames: there one is many times as large as the others.
      func burst(_ recording: Recording) -> Double {
        let sizes = recording.pictures.dropFirst(Self.cycle).map(\.bytes).sorted()
        return Double(sizes.last ?? 0) / Double(max(1, sizes[sizes.count / 2]))
      }
      let others = try Self.record(scene, refreshes: false)
      #expect(others.keys.count == 5)
      #expect(burst(recording) < burst(others) / 2, "\(burst(recording)), \(burst(others))")

      // A decoder that has seen nothing before, with the scene from that picture on, once a refresh has gone by.
      let begin = starts[1]
      let late = Recording(recording.stream.suffix(from: recording.pictures[begin].position))
      let luma = try late.quality(of: .luma, against: scene, from: nil)
      try #require(luma.count >= 150 - begin - Self.cycle, "\(luma.count)")
      let whole = try recording.luma(against: scene)
      for (late, usual) in zip(luma.suffix(20), whole.suffix(20)) { #expect(late > usual - 1) }
    }

    @Test func `a key frame comes when it is asked for`() throws {
      let scene = try Scene(size: Self.size, frames: 80)
      let recording = try Self.record(scene, keyFrames: [17, 18, 60])
      #expect(recording.keys == [0, 17, 18, 60])
      #expect(try recording.luma(against: scene).allSatisfy { $0 > 20 })
    }

    @Test func `a refresh of no length is refused`() {
      let configuration = EncoderConfiguration(
        size: Self.size, frameRate: .thirty, bitrate: 500_000, color: .bt709, refreshFrames: 1)
      #expect(throws: EncoderError.self) { try X264Encoder(configuration) }
    }
  }
#endif
