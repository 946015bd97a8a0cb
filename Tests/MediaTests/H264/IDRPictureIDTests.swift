import Foundation
import Media
import Platform
import TestSupport
import Testing

@Suite struct IDRPictureIDTests {
  /// The access units of a stream in which every picture has one slice.
  private static func identifiers(_ stream: Data) -> [Int?] {
    stream.withUnsafeBytes { bytes in
      var result: [Int?] = []
      var waiting: [NALUnit] = []
      AnnexB.forEachNALUnit(in: bytes) { unit in
        waiting.append(unit)
        guard unit.type == .idrSlice || unit.type == .nonIDRSlice else { return }
        waiting.withUnsafeBufferPointer {
          let picture = AccessUnit(
            nalUnits: $0, isKeyFrame: unit.type == .idrSlice, timestamp: .zero, captured: .zero)
          result.append(picture.idrPictureID)
        }
        waiting.removeAll()
      }
      return result
    }
  }

  @Test(arguments: ["baseline", "main", "high", "high444"])
  func `the idr_pic_id equals ffmpeg's reading`(profile: String) throws {
    let sample = try EncodedSample(
      frames: 12,
      ["-profile:v", profile, "-g", "3", "-keyint_min", "1", "-bf", "0", "-threads", "1", "-x264-params", "slices=1"]
        + (profile == "high444" ? ["-pix_fmt", "yuv444p"] : ["-pix_fmt", "yuv420p"]))
    let identifiers = Self.identifiers(sample.stream)
    #expect(identifiers.count == 12)
    let expected = try TracedHeaders(path: sample.path, in: sample.directory).values(of: "idr_pic_id")
    #expect(Set(expected) == [0, 1] && expected.count == 4)
    // 4:4:4 may have colour planes of their own, and is left alone.
    #expect(identifiers.compactMap { $0 } == (profile == "high444" ? [] : expected))
  }

  @Test func `a truncated slice has no idr_pic_id`() throws {
    let sets: [[UInt8]] = [[0x67, 66, 0xc0, 30, 0xda], [0x67], [0x67, 100, 0, 30], [0x67, 66, 0, 30, 0, 0, 0, 0]]
    for set in sets {
      for slice in [[0x65], [0x65, 0x88], [0x65, 0, 0, 3, 0, 0, 3]] as [[UInt8]] {
        let stream = Data([0, 0, 1] + set + [0, 0, 1] + slice + [0, 0, 1, 0x41])
        #expect(Self.identifiers(stream).compactMap { $0 }.isEmpty)
      }
    }
  }
}
