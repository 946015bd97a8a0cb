import Encoding
import Foundation
import Media
import TestSupport
import Testing

/// Pictures of a camera's own H.264 that pass, and those that do not.
@Suite struct PassedStreamTests {
  private static func stream(profile: H264Profile = .high) -> PassedStream {
    PassedStream(.init(size: CameraClip.size, profile: profile, frameRate: .thirty))
  }

  /// The NAL units that pass of `buffer`; nil where there is no picture.
  private static func read(
    _ buffer: [UInt8], by stream: PassedStream, color: ColorDescription = .smpte170M
  ) throws(PassedStream.Fault) -> [[UInt8]]? {
    let result = buffer.withUnsafeBytes { bytes -> Result<[[UInt8]]?, PassedStream.Fault> in
      do throws(PassedStream.Fault) {
        return .success(try stream.read(bytes, color: color)?.nalUnits.map { Array($0.bytes) })
      } catch {
        return .failure(error)
      }
    }
    return try result.get()
  }

  private static func isSlice(_ unit: [UInt8]) -> Bool { unit[0] & 0x1f == 1 || unit[0] & 0x1f == 5 }

  @Test(arguments: [["-slices", "1"], ["-slices", "4"]])
  func `every slice passes unchanged, ffmpeg decodes the same pictures, and their colours are stated`(
    options: [String]
  ) throws {
    let clip = try CameraClip(options)
    let stream = Self.stream()
    var passed: [UInt8] = []
    for (index, picture) in clip.pictures.enumerated() {
      let units = try #require(try Self.read(picture, by: stream))
      #expect(units.filter(Self.isSlice) == clip.nalUnits(index).filter(Self.isSlice))
      #expect(units.filter { !Self.isSlice($0) }.map { $0[0] & 0x1f } == (index.isMultiple(of: 10) ? [7, 8] : []))
      passed += CameraClip.buffer(units)
    }
    let path = clip.directory.path("passed.h264")
    try Data(passed).write(to: URL(fileURLWithPath: path))
    let sums = try StreamRecording.checksums(of: path, in: clip.directory)
    let original = try StreamRecording.checksums(of: clip.path, in: clip.directory)
    #expect(sums.count == 30 && sums == original)
    let probe = try Subprocess.run(
      [
        "ffprobe", "-v", "error", "-show_entries", "stream=color_space,color_range,has_b_frames,profile", "-of",
        "default=nk=1:nw=1", path,
      ], in: clip.directory)
    #expect(probe.outputText.split(separator: "\n") == ["High", "0", "tv", "smpte170m"], "\(probe.outputText)")
  }

  @Test func `nothing passes before a key frame, and parameter sets may come in a buffer of their own`() throws {
    let clip = try CameraClip()
    let stream = Self.stream()
    #expect(throws: PassedStream.Fault.damaged) { try Self.read(clip.pictures[3], by: stream) }
    let sets = clip.nalUnits(0).filter { [7, 8].contains($0[0] & 0x1f) }
    #expect(try Self.read(CameraClip.buffer(sets), by: stream) == nil)
    #expect(throws: PassedStream.Fault.damaged) { try Self.read(clip.pictures[3], by: stream) }
    let slices = clip.nalUnits(0).filter(Self.isSlice)
    #expect(try Self.read(CameraClip.buffer(slices), by: stream)?.count == 3)
    #expect(try Self.read(clip.pictures[1], by: stream)?.count == 1)
  }

  @Test func `a camera that leaves out the constraint flags of baseline gets them`() throws {
    let clip = try CameraClip(["-profile:v", "baseline"])
    let stream = Self.stream(profile: .baseline)
    var units = clip.nalUnits(0)
    let index = try #require(units.firstIndex { $0[0] & 0x1f == 7 })
    units[index][2] = 0
    let passed = try #require(try Self.read(CameraClip.buffer(units), by: stream))
    #expect(passed[0][1...2] == [66, 0xc0])
  }

  @Test(arguments: [
    (["-bf", "2", "-tune", "film"], "B pictures"), (["-flags", "+ildct+ilme"], "interlaced"),
    (["-pix_fmt", "yuv422p"], "not 8-bit 4:2:0"), (["-pix_fmt", "yuv420p10le"], "not 8-bit 4:2:0"),
    (["-s", "640x480"], "its pictures have 640x480"),
  ])
  func `a stream that viewers cannot show without delay is refused, with the reason`(
    options: [String], reason: String
  ) throws {
    let clip = try CameraClip(options)
    let stream = Self.stream()
    var reasons: [String] = []
    for picture in clip.pictures {
      do throws(PassedStream.Fault) {
        _ = try Self.read(picture, by: stream)
      } catch {
        if case .unusable(let text) = error { reasons.append(text) }
      }
    }
    #expect(reasons.contains { $0.contains(reason) }, "\(reasons)")
  }

  @Test func `a profile beyond that of the viewers is refused`() throws {
    let clip = try CameraClip(["-profile:v", "main"])
    #expect(throws: PassedStream.Fault.self) { try Self.read(clip.pictures[0], by: Self.stream(profile: .baseline)) }
    #expect(try Self.read(clip.pictures[0], by: Self.stream(profile: .main)) != nil)
  }

  @Test func `a picture without its first slice, or with two pictures in one buffer, does not pass`() throws {
    let clip = try CameraClip(["-slices", "4"])
    let stream = Self.stream()
    _ = try Self.read(clip.pictures[0], by: stream)
    var slices = clip.nalUnits(1).filter(Self.isSlice)
    try #require(slices.count == 4)
    #expect(throws: PassedStream.Fault.damaged) { try Self.read(CameraClip.buffer(slices + slices), by: stream) }
    slices.removeFirst()
    #expect(throws: PassedStream.Fault.damaged) { try Self.read(CameraClip.buffer(slices), by: stream) }
    #expect(throws: PassedStream.Fault.damaged) { try Self.read([0, 0, 1, 0x65], by: stream) }
    // forbidden_zero_bit, and a slice of another picture parameter set.
    #expect(throws: PassedStream.Fault.damaged) { try Self.read([0, 0, 1, 0xe1, 0xff], by: stream) }
    #expect(throws: PassedStream.Fault.damaged) { try Self.read([0, 0, 1, 0x41, 0b1_1_0_1_0_1_1_1, 0xff], by: stream) }
  }

  @Test func `slices pass only with the parameter sets that they mean`() throws {
    let clip = try CameraClip(["-profile:v", "baseline"])
    let others = try CameraClip(["-profile:v", "baseline", "-x264-params", "sps-id=1"])
    func unit(_ type: UInt8, of clip: CameraClip) throws -> [UInt8] {
      try #require(clip.nalUnits(0).first { $0[0] & 0x1f == type })
    }
    let (set, otherSet) = (try unit(7, of: clip), try unit(7, of: others))
    try #require(set != otherSet)
    // Another SPS with the PPS and the slices of the first.
    let stream = Self.stream()
    #expect(try Self.read(clip.pictures[0], by: stream) != nil)
    let mixed = CameraClip.buffer([otherSet, try unit(8, of: clip), try unit(5, of: clip)])
    #expect(throws: PassedStream.Fault.damaged) { try Self.read(mixed, by: stream) }
    let passed = try #require(try Self.read(others.pictures[0], by: stream)?.first)
    #expect(try SequenceParameterSet(nalUnit: passed).identifier == 1)
    // New sets behind the slices are for the next picture, which these slices do not belong to.
    let behind = Self.stream()
    let late = clip.pictures[0] + CameraClip.buffer([otherSet, try unit(8, of: others)])
    let own = try #require(try Self.read(late, by: behind)?.first)
    #expect(try SequenceParameterSet(nalUnit: own).identifier == 0)
    #expect(throws: PassedStream.Fault.damaged) { try Self.read(clip.pictures[1], by: behind) }
    #expect(try Self.read(clip.pictures[0], by: behind)?.count == 3)
    // The same set once more is no new one.
    #expect(try Self.read(clip.pictures[0] + CameraClip.buffer([set]), by: behind)?.count == 3)
    #expect(try Self.read(clip.pictures[1], by: behind)?.count == 1)
    // Between two slices, new sets begin another picture.
    let sliced = try CameraClip(["-profile:v", "baseline", "-slices", "2"])
    #expect(try Self.read(sliced.pictures[0], by: behind)?.count == 4)
    let slices = sliced.nalUnits(1).filter(Self.isSlice)
    try #require(slices.count == 2)
    let between = CameraClip.buffer([slices[0], otherSet, slices[1]])
    #expect(throws: PassedStream.Fault.damaged) { try Self.read(between, by: behind) }
    #expect(throws: PassedStream.Fault.damaged) { try Self.read(sliced.pictures[2], by: behind) }
    #expect(try Self.read(sliced.pictures[0], by: behind)?.count == 4)
  }

  @Test func `parameter sets at the end of a buffer go before the next picture`() throws {
    let clips = [
      try CameraClip(["-profile:v", "baseline"], count: 20),
      try CameraClip(["-profile:v", "baseline", "-x264-params", "sps-id=1"], count: 20),
    ]
    // The sets of each key frame stand in the buffer before it; the first such buffer has the end of a picture that
    // nobody can decode.
    var buffers = [CameraClip.buffer([[0x41, 0x9a, 0x00, 0xff]])]
    for clip in clips {
      for index in clip.pictures.indices {
        let units = clip.nalUnits(index)
        buffers[buffers.count - 1] += CameraClip.buffer(units.filter { [7, 8].contains($0[0] & 0x1f) })
        buffers.append(CameraClip.buffer(units.filter { ![7, 8].contains($0[0] & 0x1f) }))
      }
    }
    let stream = Self.stream()
    #expect(throws: PassedStream.Fault.damaged) { try Self.read(buffers[0], by: stream) }
    var passed: [UInt8] = []
    for (index, buffer) in buffers.dropFirst().enumerated() {
      let units = try #require(try Self.read(buffer, by: stream))
      #expect(units.filter { !Self.isSlice($0) }.map { $0[0] & 0x1f } == (index.isMultiple(of: 10) ? [7, 8] : []))
      if index.isMultiple(of: 10) { #expect(try Int(SequenceParameterSet(nalUnit: units[0]).identifier) == index / 20) }
      passed += CameraClip.buffer(units)
    }
    let path = clips[0].directory.path("passed.h264")
    try Data(passed).write(to: URL(fileURLWithPath: path))
    let sums = try StreamRecording.checksums(of: path, in: clips[0].directory)
    let originals = try clips.flatMap { try StreamRecording.checksums(of: $0.path, in: $0.directory) }
    #expect(sums.count == 40 && sums == originals)
  }

  @Test func `kept parameter sets give way to those of the next buffer, and are checked as these are`() throws {
    let clip = try CameraClip(["-profile:v", "baseline"])
    let others = try CameraClip(["-profile:v", "baseline", "-x264-params", "sps-id=1"])
    let high = try CameraClip(["-profile:v", "high"])
    func sets(of clip: CameraClip) -> [UInt8] {
      CameraClip.buffer(clip.nalUnits(0).filter { [7, 8].contains($0[0] & 0x1f) })
    }
    // Another camera begins with sets of its own.
    let stream = Self.stream(profile: .baseline)
    #expect(try Self.read(clip.pictures[0] + sets(of: others), by: stream)?.count == 3)
    #expect(try Self.read(clip.pictures[0], by: stream)?.count == 3)
    #expect(try Self.read(clip.pictures[1], by: stream)?.count == 1)
    // Sets of a profile that the viewers do not have.
    #expect(try Self.read(clip.pictures[2] + sets(of: high), by: stream)?.count == 1)
    do throws(PassedStream.Fault) {
      _ = try Self.read(clip.pictures[3], by: stream)
      Issue.record("a picture of another profile passed")
    } catch {
      guard case .unusable = error else { throw error }
    }
    // A set that is too long is not kept.
    let long = CameraClip.buffer([[0x68] + [UInt8](repeating: 0x55, count: ParameterSets.lengthLimit)])
    #expect(throws: PassedStream.Fault.self) { try Self.read(clip.pictures[0] + long, by: stream) }
    #expect(try Self.read(clip.pictures[0], by: stream)?.count == 3)
  }

  @Test func `a parameter set has a length limit, and too many slices do not pass`() throws {
    let clip = try CameraClip()
    let stream = Self.stream()
    let long = [0x67] + [UInt8](repeating: 0x55, count: ParameterSets.lengthLimit)
    #expect(throws: PassedStream.Fault.self) { try Self.read(CameraClip.buffer([long]), by: stream) }
    _ = try Self.read(clip.pictures[0], by: stream)
    let slice = try #require(clip.nalUnits(1).first(where: Self.isSlice))
    let many = Array(repeating: slice, count: AccessUnit.nalUnitLimit + 1)
    #expect(throws: PassedStream.Fault.damaged) { try Self.read(CameraClip.buffer(many), by: stream) }
  }

  @Test func `damaged bytes of any kind never pass more than they have`() throws {
    let clip = try CameraClip(["-slices", "3"], count: 12)
    var generator = SeededGenerator(seed: 23)
    let stream = Self.stream()
    var passed = 0
    for _ in 0..<3000 {
      var picture = clip.pictures[Int.random(in: 0..<12, using: &generator)]
      for _ in 0..<Int.random(in: 0...6, using: &generator) {
        picture[Int.random(in: 0..<min(picture.count, 80), using: &generator)] = .random(in: 0...255, using: &generator)
      }
      picture.removeLast(Int.random(in: 0..<picture.count, using: &generator))
      do throws(PassedStream.Fault) {
        guard let units = try Self.read(picture, by: stream) else { continue }
        passed += 1
        let slices = units.filter(Self.isSlice)
        #expect(!slices.isEmpty && slices.reduce(0) { $0 + $1.count } <= picture.count)
      } catch {}
    }
    #expect(passed > 100)
  }
}
