import Foundation
import Media
import TestSupport
import Testing

@Suite struct SequenceParameterSetTests {
  /// The first SPS of a stream that ffmpeg made.
  private static func parameterSet(size: String, arguments: [String]) throws -> [UInt8] {
    let directory = try TemporaryDirectory()
    let result = try Subprocess.run(
      ["ffmpeg", "-v", "error", "-f", "lavfi", "-i", "testsrc2=size=\(size):rate=25", "-frames:v", "1"] + arguments
        + ["-f", "h264", "-"], in: directory)
    #expect(result.status == 0, "\(result.error)")
    var found: [UInt8] = []
    result.output.withUnsafeBytes { bytes in
      AnnexB.forEachNALUnit(in: bytes) { if $0.type == .sequenceParameterSet { found = Array($0.bytes) } }
    }
    return found
  }

  @Test(arguments: [
    ("1920x1080", "baseline", UInt8(66)), ("642x362", "main", 77), ("640x480", "high", 100),
  ])
  func `an SPS that x264 wrote through ffmpeg is read back`(size: String, profile: String, identifier: UInt8) throws {
    let bytes = try Self.parameterSet(
      size: size,
      arguments: [
        "-pix_fmt", "yuv420p", "-c:v", "libx264", "-profile:v", profile, "-level", "4.1", "-bf", "0",
        "-color_primaries", "bt709", "-color_trc", "iec61966-2-1", "-colorspace", "smpte170m", "-color_range", "pc",
      ])
    let set = try SequenceParameterSet(nalUnit: bytes)
    #expect(set.size.description == size)
    #expect(set.profileIDC == identifier)
    #expect(set.levelIDC == 41)
    #expect(set.color == ColorDescription(primaries: 1, transfer: 13, matrix: 6, isFullRange: true))
    #expect(set.timing?.unitsInTick == 1 && set.timing?.timeScale == 50)
    #expect(set.reorderFrames == 0)
  }

  @Test(arguments: [(UInt32(1001), UInt32(60_000)), (1, 60), (0x0000_0100, 0x0000_0003), (1, 480)])
  func `timing is replaced, whatever emulation prevention the new values need`(units: UInt32, scale: UInt32) throws {
    let bytes = try Self.parameterSet(size: "1280x720", arguments: ["-pix_fmt", "yuv420p", "-c:v", "libx264"])
    let timing = SequenceParameterSet.Timing(unitsInTick: units, timeScale: scale, isFixedFrameRate: false)
    let replaced = try #require(try SequenceParameterSet.replacingTiming(in: bytes, with: timing))
    let (before, after) = (try SequenceParameterSet(nalUnit: bytes), try SequenceParameterSet(nalUnit: replaced))
    #expect(after.timing == timing)
    #expect(after.size == before.size && after.color == before.color && after.reorderFrames == before.reorderFrames)
    for index in replaced.indices.dropLast(2) where replaced[index] == 0 && replaced[index + 1] == 0 {
      #expect(replaced[index + 2] >= 3)
    }
  }

  @Test func `a truncated parameter set, or one with a flipped bit, does no harm`() throws {
    let bytes = try Self.parameterSet(size: "1920x1080", arguments: ["-pix_fmt", "yuv420p", "-c:v", "libx264"])
    var refused = 0
    for length in 0..<bytes.count {
      if (try? SequenceParameterSet(nalUnit: Array(bytes[..<length]))) == nil { refused += 1 }
    }
    #expect(refused > bytes.count / 2)
    for bit in 8..<(bytes.count * 8) {
      var damaged = bytes
      damaged[bit / 8] ^= 1 << UInt8(bit % 8)
      _ = try? SequenceParameterSet(nalUnit: damaged)
    }
    #expect(throws: ParameterSetError.self) { try SequenceParameterSet(nalUnit: [0x68, 1, 2]) }
  }
}

@Suite struct AnnexBTests {
  private static func split(_ bytes: [UInt8]) -> [[UInt8]] {
    var units: [[UInt8]] = []
    bytes.withUnsafeBytes { AnnexB.forEachNALUnit(in: $0) { units.append(Array($0.bytes)) } }
    return units
  }

  @Test(arguments: [
    ([UInt8](), [[UInt8]]()),
    ([0, 0, 1], []),
    ([0, 0, 0, 1, 0x67], [[0x67]]),
    ([0, 0, 1, 0x67, 1, 0, 0, 1, 0x68, 2], [[0x67, 1], [0x68, 2]]),
    ([0, 0, 0, 1, 0x67, 1, 0, 0, 0, 1, 0x68], [[0x67, 1], [0x68]]),
    ([9, 9, 0, 0, 1, 0x65, 0, 0, 3, 1, 0, 0], [[0x65, 0, 0, 3, 1]]),
    ([0, 0, 1, 0, 0, 1, 0x41], [[0x41]]),
  ])
  func `a byte stream is split at its start codes`(bytes: [UInt8], units: [[UInt8]]) {
    #expect(Self.split(bytes) == units)
  }
}
