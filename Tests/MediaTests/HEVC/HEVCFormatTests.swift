import Foundation
import Media
import Platform
import TestSupport
import Testing

@Suite struct HEVCFormatTests {
  @Test(arguments: ["yuv420p", "yuv420p10le", "yuv422p"])
  func `the decoder configuration is the one that ffmpeg writes, and its lengths are start codes again`(
    format: String
  ) throws {
    let clip = try HEVCClip(size: "320x180", frames: 6, "bframes=2:info=0", arguments: ["-pix_fmt", format])
    let mp4 = clip.directory.path("s.mp4")
    for command in [
      ["-i", clip.path, "-c", "copy", "-tag:v", "hvc1", mp4],
      ["-i", mp4, "-map", "0:v", "-c", "copy", "-f", "data", clip.directory.path("s.lengths")],
    ] {
      let result = try Subprocess.run(["ffmpeg", "-v", "error", "-nostdin", "-y"] + command, in: clip.directory)
      try #require(result.status == 0, "\(result.error)")
    }
    let file = [UInt8](try Data(contentsOf: URL(fileURLWithPath: mp4)))
    let at = try #require(file.indices.dropLast(4).first { file[$0..<$0 + 4].elementsEqual(Array("hvcC".utf8)) })
    let size = file[at - 4..<at].reduce(0) { $0 << 8 | Int($1) }
    let record = Array(file[at + 4..<at - 4 + size])
    let sets = try #require(clip.parameterSets)
    let configuration = try HEVCDecoderConfiguration(sets)
    #expect(configuration.bytes == record)
    let parsed = try record.withUnsafeBytes { bytes throws in try HEVCDecoderConfiguration(parsing: bytes) }
    #expect(parsed == configuration && parsed.parameterSets == sets && parsed.lengthSize == 4)
    for length in 0..<record.count - 1 {
      #expect(throws: DecoderConfigurationError.self) {
        try record[..<length].withUnsafeBytes { bytes throws in _ = try HEVCDecoderConfiguration(parsing: bytes) }
      }
    }
    #expect(throws: DecoderConfigurationError.self) {
      try ([2] + record.dropFirst()).withUnsafeBytes { bytes throws in
        _ = try HEVCDecoderConfiguration(parsing: bytes)
      }
    }
    let samples = try Data(contentsOf: clip.directory.url.appendingPathComponent("s.lengths"))
    let stream = try samples.withUnsafeBytes { bytes throws in try AnnexB.bytes(fromAVCC: bytes) }
    // The sets are in the record.
    let slices = clip.nalUnits.filter { HEVCClip.type($0) < 32 }
    #expect(HEVCClip.nalUnits(stream).filter { HEVCClip.type($0) < 32 } == slices)
    // ffmpeg leaves a zero of the next start code at the end of some NAL units, and we do not.
    let lengths = try stream.withUnsafeBytes { bytes throws in try AVCC.bytes(fromAnnexB: bytes) }
    var units: [[UInt8]] = []
    try lengths.withUnsafeBytes { bytes throws in try AVCC.forEachNALUnit(in: bytes) { units.append(Array($0.bytes)) } }
    #expect(units == HEVCClip.nalUnits(stream))
  }

  @Test func `headers are two bytes, both ways`() throws {
    for type in UInt8(0)...63 {
      for layer in UInt8(0)...63 {
        for temporal in UInt8(0)...6 {
          let header = HEVCNALUnitHeader(
            type: HEVCNALUnitType(rawValue: type), layerID: layer, temporalID: temporal)
          let (first, second) = header.bytes
          #expect(first & 0x80 == 0 && second & 7 == temporal + 1)
          let read = try [first, second].withUnsafeBytes { bytes throws in
            HEVCNALUnitHeader(try #require(NALUnit(bytes)))
          }
          #expect(read == header)
        }
      }
    }
    for broken: [UInt8] in [[0x40], [0xc0, 1], [0x40, 0], [0x40, 0xf8]] {
      let header = try broken.withUnsafeBytes { bytes throws in HEVCNALUnitHeader(try #require(NALUnit(bytes))) }
      #expect(header == nil)
    }
    // ITU-T H.265 table 7-1, without the reserved types, which decoders ignore (clause 7.4.2.2).
    let types = (UInt8(0)...63).map { HEVCNALUnitType(rawValue: $0) }
    #expect(types.filter(\.isKeyFrame).map(\.rawValue) == Array(16...21))
    #expect(types.filter(\.isSlice).map(\.rawValue) == Array(0...9) + Array(16...21))
    #expect(types.filter(\.isIDR).map(\.rawValue) == [19, 20] && types.filter(\.isRASL).map(\.rawValue) == [8, 9])
    #expect(types.filter(\.isSubLayerNonReference).map(\.rawValue) == [0, 2, 4, 6, 8, 10, 12, 14])
  }

  @Test(arguments: [
    // Size, frames a second, bit/s, level by table A.8 and A.9, tier.
    ("416x240", UInt32(15), 100_000, UInt8(60), false), ("640x360", 30, 1_000_000, 63, false),
    ("960x540", 30, 3_000_000, 90, false), ("1280x720", 30, 3_000_000, 93, false),
    ("1280x720", 60, 3_000_000, 120, false), ("1920x1080", 30, 6_000_000, 120, false),
    ("1920x1080", 30, 15_000_000, 123, false), ("1920x1080", 60, 6_000_000, 123, false),
    ("3840x2160", 30, 20_000_000, 150, false), ("3840x2160", 60, 20_000_000, 153, false),
    ("1920x1080", 30, 250_000_000, 183, true), ("8192x4320", 120, 700_000_000, 186, true),
    ("1920x1080", 30, 100_000_000, 183, false),
  ])
  func `the lowest level holds the stream`(size: String, rate: UInt32, peak: Int, level: UInt8, isHigh: Bool) throws {
    let sides = size.split(separator: "x").compactMap { Int($0) }
    let found = HEVCLevel.lowest(
      size: PictureSize(width: sides[0], height: sides[1]), frameRate: try #require(FrameRate(rate)), peak: peak,
      buffer: peak / 2)
    #expect(found == (level, isHigh), "\(found)")
  }

  @Test func `the level of a stream without peaks is that of x265`() throws {
    for (size, rate) in [("320x180", "25"), ("640x360", "50"), ("1280x720", "30"), ("1920x1080", "30")] {
      let clip = try HEVCClip(size: size, rate: rate, frames: 1)
      let set = try HEVCSequenceParameterSet(nalUnit: try #require(clip.parameterSets).sequence)
      let found = HEVCLevel.lowest(
        size: set.codedSize, frameRate: try #require(set.frameRate), peak: 0, buffer: 0)
      #expect(found == (set.profileTierLevel.levelIDC, set.profileTierLevel.isHighTier), "\(size): \(found)")
    }
  }

  @Test func `the cache puts three sets before every key frame, behind the delimiter`() throws {
    let clip = try HEVCClip(frames: 4, "keyint=2:min-keyint=2:bframes=0:aud=1:info=0:open-gop=0")
    let sets = try #require(clip.parameterSets)
    let cache = ParameterSetCache(codec: .hevc)
    var completed: [[UInt8]] = []
    for (index, unit) in try clip.packets().enumerated() {
      // The sets come with the first picture alone.
      try withNALUnits(unit.filter { index == 0 || !(32...34).contains(HEVCClip.type($0)) }) { units throws in
        let isKeyFrame = unit.contains { (16...23).contains(HEVCClip.type($0)) }
        try cache.complete(
          AccessUnit(nalUnits: units, isKeyFrame: isKeyFrame, timestamp: .zero, captured: .zero)
        ) { completed += $0.nalUnits.map { Array($0.bytes) } }
      }
    }
    let types = completed.map(HEVCClip.type)
    #expect(types.count { $0 == 32 } == 2 && types.count { $0 == 33 } == 2 && types.count { $0 == 34 } == 2)
    let second = try #require(types.lastIndex(of: 32))
    #expect(types[second - 1] == 35 && Array(types[second...second + 2]) == [32, 33, 34])
    #expect(cache.parameterSets == sets && cache.current?.revision == 1)
    #expect(try HEVCClip.checksums(of: completed.flatMap { AnnexB.startCode + $0 }).count == 4)
  }
}
