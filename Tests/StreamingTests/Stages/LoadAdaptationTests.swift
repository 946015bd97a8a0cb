import Media
import Platform
import Streaming
import TestSupport
import Testing

@Suite struct LoadAdaptationTests {
  private static let presets = ["ultrafast", "superfast", "veryfast", "faster", "fast", "medium"]
  private static let size = PictureSize(width: 1920, height: 1080)

  private static func effort(_ preset: String) -> EncodingEffort? {
    presets.firstIndex(of: preset).map { EncodingEffort(rawValue: $0) }
  }

  private static func step(_ preset: String) throws -> LoadAdaptation.Step {
    .effort(try #require(effort(preset)))
  }

  /// Feeds one load a second; at which seconds the level changed, and to which.
  private static func changes(
    _ adaptation: inout LoadAdaptation, from start: Int, seconds: Int, load: (Int) -> Double
  ) -> [[Int]] {
    (start..<start + seconds).compactMap { second in
      let level = adaptation.level
      return adaptation.note(load: load(level), at: Instant(seconds: Double(second)))
        ? [second, adaptation.level] : nil
    }
  }

  @Test func `the ladder goes from cheaper presets by fewer frames to smaller pictures`() throws {
    try #expect(
      LoadAdaptation.ladder(effort: Self.effort("veryfast"), size: Self.size, frameRate: .thirty) == [
        Self.step("superfast"), Self.step("ultrafast"), .frameRate(20), .frameRate(15),
        .size(PictureSize(width: 1280, height: 720)), .size(PictureSize(width: 960, height: 540)),
        .size(PictureSize(width: 640, height: 360)),
      ])
    #expect(
      LoadAdaptation.ladder(
        effort: Self.effort("ultrafast"), size: PictureSize(width: 640, height: 480),
        frameRate: try #require(FrameRate(15, 1))) == [.frameRate(10), .size(PictureSize(width: 640, height: 360))])
  }

  @Test func `lasting overload makes encoding cheaper, a short one does not`() {
    var adaptation = LoadAdaptation(
      steps: LoadAdaptation.ladder(effort: Self.effort("fast"), size: Self.size, frameRate: .thirty))
    #expect(Self.changes(&adaptation, from: 0, seconds: 4) { _ in 0.9 }.isEmpty)
    #expect(Self.changes(&adaptation, from: 4, seconds: 1) { _ in 0.5 }.isEmpty)
    // Five seconds of trouble, three to settle.
    #expect(Self.changes(&adaptation, from: 5, seconds: 20) { 0.95 - Double($0) * 0.1 } == [[10, 1], [18, 2]])
    #expect(adaptation.restrictions.encoder.effort == Self.effort("veryfast"))
  }

  @Test func `an encoder that takes seconds for a picture is overloaded, and a stream without viewers is not`() {
    func level(_ load: Double) -> Int {
      var adaptation = LoadAdaptation(steps: [.frameRate(20)])
      // One call each four seconds: those without a finished picture are not counted.
      for second in stride(from: 0.0, to: 13, by: 4) { _ = adaptation.note(load: load, at: Instant(seconds: second)) }
      return adaptation.level
    }
    #expect(level(4) == 1)
    #expect(level(0.9) == 0)
  }

  @Test func `while a governor can lessen the effort no step is taken, and those that were taken come back`() {
    var adaptation = LoadAdaptation(steps: [.frameRate(20), .frameRate(15)])
    func note(_ load: Double, isLeast: Bool, _ seconds: Range<Int>) {
      for second in seconds { _ = adaptation.note(load: load, isLeast: isLeast, at: Instant(seconds: Double(second))) }
    }
    note(0.9, isLeast: false, 0..<60)
    #expect(adaptation.level == 0)
    // The trouble before does not count.
    note(0.9, isLeast: true, 60..<65)
    #expect(adaptation.level == 0)
    note(0.9, isLeast: true, 65..<67)
    #expect(adaptation.level == 1)
    // The governor has found room for more too.
    note(0.2, isLeast: false, 67..<200)
    #expect(adaptation.level == 0)
  }

  @Test func `where frames are lost already it goes two steps at once, and ends at the last`() throws {
    var adaptation = try LoadAdaptation(steps: [Self.step("superfast"), Self.step("ultrafast"), .frameRate(15)])
    #expect(Self.changes(&adaptation, from: 0, seconds: 60) { _ in 1 }.map { $0[1] } == [2, 3])
    #expect(
      adaptation.restrictions
        == StreamRestrictions(encoder: EncoderRestrictions(effort: Self.effort("ultrafast")), maximumFrameRate: 15))
  }

  @Test func `after a failed attempt to raise the quality, the next attempt waits twice as long`() throws {
    var adaptation = try LoadAdaptation(steps: [Self.step("ultrafast")])
    let changes = Self.changes(&adaptation, from: 0, seconds: 600) { $0 == 0 ? 0.9 : 0.2 }
    #expect(changes.map { $0[1] } == [1, 0, 1, 0, 1, 0, 1, 0, 1].prefix(changes.count).map { $0 })
    let raised = changes.filter { $0[1] == 0 }.map { $0[0] }
    let lowered = changes.filter { $0[1] == 1 }.map { $0[0] }
    #expect(zip(raised, lowered).map { $0 - $1 - 3 } == [30, 60, 120, 240].prefix(raised.count).map { $0 })
  }

  @Test func `load from before a pause without viewers does not count`() {
    var adaptation = LoadAdaptation(steps: [.frameRate(20), .frameRate(15)])
    #expect(Self.changes(&adaptation, from: 0, seconds: 3) { _ in 0.95 }.isEmpty)
    #expect(Self.changes(&adaptation, from: 3600, seconds: 4) { _ in 0.95 }.isEmpty)
    #expect(Self.changes(&adaptation, from: 3604, seconds: 3) { _ in 0.95 } == [[3605, 1]])
  }

  @Test func `between room and limit nothing changes`() {
    var adaptation = LoadAdaptation(steps: [.frameRate(20), .frameRate(15)])
    _ = Self.changes(&adaptation, from: 0, seconds: 6) { _ in 0.9 }
    #expect(adaptation.level == 1)
    #expect(Self.changes(&adaptation, from: 6, seconds: 300) { _ in 0.6 }.isEmpty)
  }

  @Test func `of two restrictions the stricter one of each counts`() {
    let (hot, slow) = (
      StreamRestrictions(
        encoder: EncoderRestrictions(maximumSize: PictureSize(width: 1280, height: 720)), maximumFrameRate: 25,
        bitrateShare: 0.7),
      StreamRestrictions(encoder: EncoderRestrictions(effort: Self.effort("ultrafast")), maximumFrameRate: 15)
    )
    let joined = StreamRestrictions(
      encoder: EncoderRestrictions(
        maximumSize: PictureSize(width: 1280, height: 720), effort: Self.effort("ultrafast")),
      maximumFrameRate: 15, bitrateShare: 0.7)
    #expect(hot.joined(with: slow) == joined)
    #expect(slow.joined(with: hot) == joined)
    #expect(hot.joined(with: StreamRestrictions()) == hot)
  }
}

@Suite struct FrameThinningTests {
  @Test(arguments: [(30.0, 25.0), (30, 20), (60, 25), (30, 15), (29.97, 10)])
  func `so many frames a second pass, evenly`(from: Double, to rate: Double) {
    let thinning = FrameThinning()
    thinning.limit(to: rate)
    var due: Instant?
    let frames = Int(from * 10)
    var passed: [Int] = []
    for frame in 0..<frames {
      // A camera trembles.
      let tremble = frame.isMultiple(of: 3) ? 0.002 : -0.001
      if thinning.passes(Instant(seconds: 5 + Double(frame) / from + tremble), due: &due) { passed.append(frame) }
    }
    #expect(abs(Double(passed.count) - rate * 10) <= 2)
    let gaps = zip(passed.dropFirst(), passed).map { $0 - $1 }
    #expect(Double(gaps.max() ?? 0) <= (from / rate).rounded(.up))
  }

  @Test func `without a limit all pass, and after a pause it begins anew`() {
    let thinning = FrameThinning()
    var due: Instant?
    for frame in 0..<30 { #expect(thinning.passes(Instant(seconds: Double(frame) / 30), due: &due)) }
    thinning.limit(to: 10)
    #expect(thinning.passes(Instant(seconds: 1), due: &due))
    #expect(!thinning.passes(Instant(seconds: 1.03), due: &due))
    #expect(thinning.passes(Instant(seconds: 60), due: &due))
    #expect(!thinning.passes(Instant(seconds: 60.03), due: &due))
    // A clock that was set back, which CLOCK_MONOTONIC is not, but a clip's may be.
    #expect(thinning.passes(Instant(seconds: 2), due: &due))
  }
}
