import Capture
import Foundation
import Glibc
import Media
import Platform
import TestSupport
import Testing

/// A picture that no longer changes is found, and only that.
@Suite struct StillnessDetectorTests {
  private static let size = PictureSize(width: 322, height: 182)
  private static func time(_ number: Int) -> Instant {
    Instant(seconds: 5) + FrameRate.thirty.time(ofFrame: Int64(number))
  }

  private static func noise(_ planes: NV12Planes, seed: UInt64) {
    var generator = SeededGenerator(seed: seed)
    for index in 0..<planes.lumaStride * size.height { planes.luma[index] = .random(in: 0...255, using: &generator) }
    for index in 0..<planes.chromaStride * size.height / 2 {
      planes.chroma[index] = .random(in: 0...255, using: &generator)
    }
  }

  @Test func `the same picture is frozen after ten seconds, and moves with the next`() throws {
    let frame = try FramePool(size: Self.size, capacity: 1).frame()
    Self.noise(frame.planes, seed: 1)
    var detector = StillnessDetector()
    for number in 0..<300 { #expect(detector.note(frame.planes, at: Self.time(number)) == .none) }
    #expect(detector.note(frame.planes, at: Self.time(300)) == .froze(since: Self.time(0)))
    #expect(detector.isFrozen)
    for number in 301..<400 { #expect(detector.note(frame.planes, at: Self.time(number)) == .none) }
    frame.planes.luma[0] ^= 1
    var thawed: [Int] = []
    for number in 400..<500 where detector.note(frame.planes, at: Self.time(number)) != .none { thawed.append(number) }
    #expect(thawed.count == 1 && thawed[0] < 420, "\(thawed)")
  }

  @Test(arguments: [5, 40, 700, 90_000])
  func `a coded picture that is repeated is frozen after ten seconds, and another one moves`(length: Int) {
    var generator = SeededGenerator(seed: 4)
    var bytes = (0..<length).map { _ in UInt8.random(in: 0...255, using: &generator) }
    var detector = StillnessDetector()
    func note(_ number: Int) -> StillnessDetector.Change {
      bytes.withUnsafeBytes { detector.note($0, at: Self.time(number)) }
    }
    for number in 0..<300 { #expect(note(number) == .none) }
    #expect(note(300) == .froze(since: Self.time(0)))
    #expect(note(301) == .none)
    // The headers are at the beginning.
    bytes[min(length - 1, 9)] ^= 1
    #expect(note(302) == .thawed(after: Self.time(302) - Self.time(0)))
    bytes.append(0)
    for number in 303..<602 { #expect(note(number) == .none) }
    #expect(note(603) == .froze(since: Self.time(303)))
  }

  @Test func `what an encoder makes of a still picture is not frozen`() throws {
    let directory = try TemporaryDirectory()
    let path = directory.path("still.h264")
    let made = try Subprocess.run(
      [
        "ffmpeg", "-nostdin", "-v", "error", "-f", "lavfi", "-i", "color=gray:s=320x240:r=30", "-frames:v", "400",
        "-c:v", "libx264", "-preset", "ultrafast", "-tune", "zerolatency", "-g", "60", "-bsf:v",
        "h264_metadata=aud=insert", "-f", "h264", "-y", path,
      ], in: directory)
    try #require(made.status == 0, "\(made.error)")
    let stream = try [UInt8](Data(contentsOf: URL(fileURLWithPath: path)))
    var pictures: [[UInt8]] = []
    stream.withUnsafeBytes {
      AnnexB.forEachNALUnit(in: $0) { unit in
        if unit.type == .accessUnitDelimiter { pictures.append([]) }
        pictures[pictures.count - 1] += unit.bytes
      }
    }
    try #require(pictures.count == 400)
    var detector = StillnessDetector()
    for (number, picture) in pictures.enumerated() {
      #expect(picture.withUnsafeBytes { detector.note($0, at: Self.time(number)) } == .none, "\(number)")
    }
  }

  /// Wherever the one bit is that changes now and then: no place is left out.
  @Test func `a single bit that changes keeps a picture alive`() throws {
    let frame = try FramePool(size: Self.size, capacity: 1).frame()
    Self.noise(frame.planes, seed: 2)
    var generator = SeededGenerator(seed: 3)
    for _ in 0..<60 {
      var detector = StillnessDetector()
      let isLuma = Bool.random(using: &generator)
      let row = Int.random(in: 0..<Self.size.height / (isLuma ? 1 : 2), using: &generator)
      let column = Int.random(in: 0..<Self.size.width, using: &generator)
      let base = isLuma ? frame.planes.luma : frame.planes.chroma
      let offset = row * (isLuma ? frame.planes.lumaStride : frame.planes.chromaStride) + column
      var changes = 0
      for number in 0..<700 {
        // Every four seconds, for good.
        if number % 120 == 119 { base[offset] ^= 1 }
        if detector.note(frame.planes, at: Self.time(number)) != .none { changes += 1 }
      }
      #expect(changes == 0, "luma \(isLuma), row \(row), column \(column)")
    }
  }

  @Test func `bytes between the rows of the picture do not count`() throws {
    let frame = try FramePool(size: Self.size, capacity: 1).frame()
    Self.noise(frame.planes, seed: 4)
    try #require(frame.planes.lumaStride > Self.size.width)
    var detector = StillnessDetector()
    var froze = false
    for number in 0..<310 {
      for row in 0..<Self.size.height {
        frame.planes.luma[row * frame.planes.lumaStride + Self.size.width] = UInt8(number % 256)
      }
      if detector.note(frame.planes, at: Self.time(number)) != .none { froze = true }
    }
    #expect(froze)
  }

  @Test func `a slow camera is not called frozen before every part was seen twice`() throws {
    let frame = try FramePool(size: Self.size, capacity: 1).frame()
    var detector = StillnessDetector()
    var frozenAt: Int?
    for number in 0..<60 {
      let time = Instant(seconds: Double(number) + 1)
      if detector.note(frame.planes, at: time) != .none, frozenAt == nil { frozenAt = number }
    }
    #expect(frozenAt == 2 * StillnessDetector.stripCount)
  }
}
