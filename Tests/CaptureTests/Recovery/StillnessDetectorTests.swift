import Glibc
import Media
import Platform
import TestSupport
import Testing

@testable import Capture

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
