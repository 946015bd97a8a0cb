import Platform
import Streaming
import Testing

/// The choice of a rendition, by the limits that a network shows from tenth to tenth of a second.
@Suite struct RenditionChoiceTests {
  private static let needed = 1_000_000.0

  /// A choice with the time, and the network's limit.
  private struct Viewer {
    var choice = RenditionChoice()
    var decreases = 0
    private(set) var tenths = 0

    init() {}

    /// Looks at the network for some time. Returns the times in tenths at which the rendition changed.
    mutating func look(_ limit: Double?, seconds: Double, decreasesEach tenths: Int = .max) -> [Int] {
      var changes: [Int] = []
      for step in 0..<Int(seconds * 10) {
        self.tenths += 1
        if step % tenths == tenths - 1 { decreases += 1 }
        let before = choice.rendition
        let now = Instant.zero + .milliseconds(Int64(self.tenths) * 100)
        if choice.choose(limit: limit, decreases: decreases, needed: needed, at: now) != before {
          changes.append(self.tenths)
        }
      }
      return changes
    }
  }

  @Test func `a viewer whose network takes what the full rendition needs keeps it`() {
    var viewer = Viewer()
    #expect(viewer.look(nil, seconds: 100).isEmpty)
    #expect(viewer.look(1_000_000, seconds: 100, decreasesEach: 20).isEmpty)
    // A pause of a wireless network, and a limit that is a little too low for less than a second.
    #expect(viewer.look(300_000, seconds: 0.2).isEmpty)
    #expect(viewer.look(nil, seconds: 1).isEmpty)
    #expect(viewer.look(900_000, seconds: 0.9).isEmpty)
    #expect(viewer.look(1_100_000, seconds: 1).isEmpty)
    #expect(viewer.look(900_000, seconds: 0.9).isEmpty)
    #expect(viewer.choice.rendition == .full)
  }

  @Test func `one whose network takes clearly less gets the small one soon, and one a little below it after a second`()
  {
    var viewer = Viewer()
    #expect(viewer.look(400_000, seconds: 1) == [3])
    var other = Viewer()
    #expect(other.look(900_000, seconds: 2) == [11])
  }

  @Test func `a small rendition that does not come is chosen again after 5 s, 10 s, and so on`() {
    var viewer = Viewer()
    #expect(viewer.look(400_000, seconds: 1) == [3])
    for pause in [5, 10, 20, 40, 80, 160, 160] {
      viewer.choice.refuse(at: .zero + .milliseconds(Int64(viewer.tenths) * 100))
      #expect(viewer.choice.rendition == .full)
      let begin = viewer.tenths
      #expect(viewer.look(400_000, seconds: Double(pause) + 1) == [begin + pause * 10 + 2])
    }
    // One that came, and was needed no more, was no refusal.
    #expect(viewer.look(1_300_000, seconds: 20).count == 1)
    #expect(viewer.look(400_000, seconds: 1).count == 1)
    viewer.choice.refuse(at: .zero + .milliseconds(Int64(viewer.tenths) * 100))
    #expect(viewer.look(400_000, seconds: 6).count == 1)
  }

  @Test func `it comes back once the network took clearly more for three seconds`() {
    var viewer = Viewer()
    _ = viewer.look(400_000, seconds: 1)
    #expect(viewer.look(1_100_000, seconds: 20, decreasesEach: 50).isEmpty, "more, but not clearly")
    #expect(viewer.look(1_300_000, seconds: 2).isEmpty)
    #expect(viewer.look(1_100_000, seconds: 1, decreasesEach: 5).isEmpty)
    let before = viewer.tenths
    #expect(viewer.look(1_300_000, seconds: 10) == [before + 31])
    #expect(viewer.choice.rendition == .full && !viewer.choice.isTry)
    // So does one that has no limit any more.
    var other = Viewer()
    _ = other.look(400_000, seconds: 1)
    #expect(other.look(nil, seconds: 10).count == 1)
  }

  @Test
  func `a network that shows no further limit is tried after half a minute at most, and after a minute when it fails`()
  {
    var viewer = Viewer()
    _ = viewer.look(400_000, seconds: 1)
    // One that shows its limit again and again is never tried.
    #expect(viewer.look(400_000, seconds: 300, decreasesEach: 200).isEmpty)
    // The last one was at the end.
    #expect(viewer.look(400_000, seconds: 29.5).isEmpty)
    #expect(viewer.look(400_000, seconds: 0.6).count == 1)
    #expect(viewer.choice.rendition == .full && viewer.choice.isTry)
    // Too much: the next time is a minute.
    #expect(viewer.look(400_000, seconds: 1).count == 1)
    let failed = viewer.tenths
    while viewer.choice.rendition == .small, viewer.tenths < failed + 1000 { _ = viewer.look(400_000, seconds: 0.1) }
    #expect((590...600).contains(viewer.tenths - failed), "\(viewer.tenths - failed)")
  }

  @Test func `each return that fails doubles the time to the next, up to a limit, and one that holds begins anew`() {
    var viewer = Viewer()
    _ = viewer.look(400_000, seconds: 1)
    var waits: [Int] = []
    for _ in 0..<8 {
      var tenths = 0
      while viewer.choice.rendition == .small, tenths < 10_000 {
        tenths += 1
        _ = viewer.look(1_300_000, seconds: 0.1)
      }
      waits.append(tenths)
      _ = viewer.look(400_000, seconds: 1)
    }
    #expect(waits == [31, 61, 121, 241, 481, 961, 961, 961])
    while viewer.choice.rendition == .small { _ = viewer.look(nil, seconds: 0.1) }
    #expect(viewer.look(nil, seconds: 70).isEmpty)
    #expect(viewer.look(400_000, seconds: 1).count == 1)
    let before = viewer.tenths
    #expect(viewer.look(nil, seconds: 60).first == before + 31)
  }

  @Test func `without a small rendition the full one is chosen, and nothing is remembered`() {
    var viewer = Viewer()
    _ = viewer.look(400_000, seconds: 1)
    viewer.choice.reset()
    #expect(viewer.choice.rendition == .full && viewer.choice.failures == 0 && !viewer.choice.isUndecided)
  }
}
