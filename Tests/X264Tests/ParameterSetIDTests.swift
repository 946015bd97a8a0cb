import Foundation
import Media
import Platform
import TestSupport
import Testing

#if X264
  import X264

  /// Streams in which one x264 follows another, as when the quality governor changes the preset.
  @Suite struct ParameterSetIDTests {
    private static let frames = 10

    /// A group of pictures, and the encoder's own parameter sets.
    private func group(
      _ scene: Scene, preset: String, profile: H264Profile, isSmall: Bool = false
    ) throws -> (recording: Recording, sets: ParameterSets) {
      var configuration = EncoderConfiguration(
        size: scene.size, frameRate: .thirty, bitrate: 1_000_000, color: .bt709, profile: profile)
      configuration.x264Preset = preset
      configuration.isSmallRendition = isSmall
      let encoder = try X264Encoder(configuration)
      defer { encoder.stop() }
      try encoder.prepare()
      let pool = try FramePool(size: scene.size)
      var recording = Recording()
      for index in 0..<Self.frames {
        let frame = try scene.frame(index, from: pool)
        try encoder.encode(frame, keyFrame: index == 0) { recording.add($0) }
      }
      return (recording, encoder.parameterSets)
    }

    /// The digests of the pictures that ffmpeg decodes, whatever it complains of.
    private func decoded(_ stream: Data) throws -> [String] { try StreamRecording.checksums(of: stream) }

    @Test func `every preset and shape, large or small, has ids of its own, which ffmpeg's parser reads too`() throws {
      var seen: [Int: String] = [:]
      for (width, height) in [(320, 180), (180, 320)] {
        let scene = try Scene(size: PictureSize(width: width, height: height), frames: Self.frames)
        let small = ["ultrafast", "superfast", "veryfast"]
        let kinds = X264Encoder.presets.map { ($0, false) } + small.map { ($0, true) }
        for (preset, isSmall) in kinds {
          let (recording, sets) = try group(scene, preset: preset, profile: .high, isSmall: isSmall)
          let directory = try TemporaryDirectory()
          try recording.stream.write(to: directory.url.appendingPathComponent("s.h264"))
          let headers = try TracedHeaders(path: directory.path("s.h264"), frames: 3, in: directory)
          let ids = Set(headers.values(of: "pic_parameter_set_id"))
          let id = try #require(ids.first)
          #expect(ids.count == 1 && Set(headers.values(of: "seq_parameter_set_id")) == [id])
          #expect(
            seen.updateValue("\(width)x\(height) \(preset) \(isSmall)", forKey: id) == nil, "\(id) is that of \(seen)")
          #expect(try SequenceParameterSet(nalUnit: sets.sequence).identifier == id)
        }
      }
      #expect(seen.count == 2 * (X264Encoder.presets.count + 3) && !seen.keys.contains(0))
    }

    @Test func `a receiver that has lost the sets of a small rendition decodes none of its pictures by the full ones`()
      throws
    {
      let scene = try Scene(size: PictureSize(width: 320, height: 180), frames: Self.frames)
      let small = try Scene(size: PictureSize(width: 160, height: 96), frames: Self.frames)
      let first = try group(scene, preset: "ultrafast", profile: .baseline)
      let second = try group(small, preset: "ultrafast", profile: .baseline, isSmall: true)
      let alone = try decoded(first.recording.stream)
      #expect(alone.count == Self.frames)
      #expect(try decoded(first.recording.stream + withoutSets(second.recording)) == alone)
      #expect(try decoded(second.recording.stream + withoutSets(first.recording)) == decoded(second.recording.stream))
    }

    /// The bytes of a group without its parameter sets.
    private func withoutSets(_ recording: Recording) -> Data {
      var bytes = Data()
      recording.stream.withUnsafeBytes { stream in
        AnnexB.forEachNALUnit(in: stream) { unit in
          guard unit.type != .sequenceParameterSet, unit.type != .pictureParameterSet else { return }
          bytes.append(contentsOf: AnnexB.startCode)
          bytes.append(contentsOf: unit.bytes)
        }
      }
      return bytes
    }

    @Test func `a receiver that has lost the sets of another preset decodes no picture by the former ones`() throws {
      let scene = try Scene(size: PictureSize(width: 320, height: 180), frames: Self.frames)
      let first = try group(scene, preset: "ultrafast", profile: .high)
      let second = try group(scene, preset: "superfast", profile: .high)
      // CAVLC without the 8x8 transform, and CABAC with it.
      #expect(first.sets != second.sets)
      let withoutSets = self.withoutSets(second.recording)
      #expect(withoutSets.count < second.recording.stream.count)
      let alone = try decoded(first.recording.stream)
      #expect(alone.count == Self.frames)
      #expect(try decoded(first.recording.stream + withoutSets) == alone)
      let whole = try decoded(first.recording.stream + second.recording.stream)
      #expect(whole == (try decoded(first.recording.stream)) + (try decoded(second.recording.stream)))
    }
  }
#endif
