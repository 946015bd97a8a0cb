import Media
import Platform
import Streaming
import TestSupport
import Testing

/// The choice of VA-API's quality level, by traces of encode times.
@Suite struct LevelGovernorTests {
  /// Hardware whose frames take `fastest` milliseconds with the last level, and `step` more with each level above it. A level begins
  /// at once where it is faster, else after `wait` seconds.
  private struct Hardware {
    var fastest = 3.0
    var step = 1.0
    var wait = 1
    var frames = 30
    var dropped = 0
    var heat = QualityGovernor.Heat.none
    let count: Int
    private(set) var level: Int?
    private var requested: (level: Int, second: Int)?

    init(count: Int = 7, level: Int? = nil) { (self.count, self.level) = (count, level) }

    mutating func request(_ wanted: Int, at second: Int) {
      if let level, wanted > level { self.level = wanted }
      if wanted == level { requested = nil } else if requested?.level != wanted { requested = (wanted, second) }
    }

    /// The measurement of the second before `second`.
    mutating func measure(at second: Int) -> QualityGovernor.Measurement {
      if let requested, second - requested.second >= wait, frames > 0 {
        level = requested.level
        self.requested = nil
      }
      var times = LatencyHistogram()
      let each = (fastest + step * Double(count - (level ?? (count + 1) / 2))) / 1000
      for _ in 0..<frames { times.record(Duration(seconds: each)) }
      // The process is far beyond every budget.
      return QualityGovernor.Measurement(
        times: times, interval: FrameRate.thirty.interval, elapsed: Duration(seconds: 1),
        encoderTime: Duration(seconds: each * Double(frames)), processTime: Duration(seconds: 64), dropped: dropped,
        heat: heat)
    }
  }

  private struct Change: Equatable {
    var second: Int
    var level: Int
    var reason: QualityGovernor.Reason
  }

  /// Lets the governor look at the hardware in each of these seconds, and returns what changes when.
  private static func changes(
    _ governor: inout LevelGovernor, _ hardware: inout Hardware, _ seconds: Range<Int>,
    claim: (Instant) -> Bool = { _ in true }
  ) -> [Change] {
    var changes: [Change] = []
    for second in seconds {
      let now = Instant(seconds: Double(second))
      let measurement = hardware.measure(at: second)
      let hasChanged = governor.note(measurement, at: hardware.level, now: now, claim: { claim(now) })
      hardware.request(governor.level, at: second)
      if hasChanged, let reason = governor.reason {
        changes.append(Change(second: second, level: governor.level, reason: reason))
      }
    }
    return changes
  }

  private static func governor(_ count: Int = 7, present: Int? = nil) throws -> LevelGovernor {
    try #require(LevelGovernor(QualityLevels(count: count, present: present)))
  }

  @Test func `the levels of each driver become a ladder from the last to the first`() throws {
    for (count, levels) in [
      (2, [2, 1]), (3, [3, 2, 1]), (7, [7, 6, 5, 4, 3, 2, 1]), (8, [8, 7, 6, 4, 3, 2, 1]),
      (100, [100, 83, 67, 50, 34, 17, 1]),
    ] {
      let ladder = LevelGovernor.ladder(ofLevels: count)
      #expect(ladder.map { count - $0.effort.rawValue } == levels)
      #expect(ladder.first?.cost == 1 && abs((ladder.last?.cost ?? 0) - LevelGovernor.bestCost) < 1e-9)
      #expect(zip(ladder.dropFirst(), ladder).allSatisfy { $0.cost > $1.cost })
    }
    #expect(LevelGovernor(QualityLevels(count: 1)) == nil && LevelGovernor(QualityLevels(count: 0)) == nil)
  }

  @Test func `it begins with the present level, or with the middle one`() throws {
    for (count, present, level, faster) in [
      (7, nil, 4, 5), (2, nil, 2, nil), (3, nil, 2, 3), (7, 7, 7, nil), (7, 2, 2, 3),
      // A level between the rungs counts as none, and late frames of it need a faster one.
      (100, 99, 50, 100),
    ] as [(Int, Int?, Int, Int?)] {
      let governor = try Self.governor(count, present: present)
      #expect(governor.level == level && governor.faster == faster)
    }
  }

  @Test func `with room the level gets better within seconds of the start, whatever the processors do`() throws {
    var governor = try Self.governor()
    var hardware = Hardware()
    let changes = Self.changes(&governor, &hardware, 1..<60)
    #expect(changes.map(\.level) == [2, 1])
    #expect(changes.allSatisfy { $0.reason == .room })
    #expect(changes.last?.second ?? 99 <= 30)
    #expect(governor.faster == 2 && governor.levelAtWork == 1 && governor.changes == 2)
  }

  /// Half an interval is 16.7 ms: level 4 takes 15 ms, and the estimate for level 3 is 18.9.
  @Test func `the level is the best that encodes within half a frame interval`() throws {
    var governor = try Self.governor()
    var hardware = Hardware()
    (hardware.fastest, hardware.step) = (6, 3)
    #expect(Self.changes(&governor, &hardware, 1..<1000).isEmpty)
    #expect(governor.percentile99.map { abs($0.seconds - 0.015) < 0.001 } == true)
    // 11 ms, and an estimate of 13.9.
    hardware.fastest = 2
    #expect(Self.changes(&governor, &hardware, 1000..<2000).map(\.level) == [3])
  }

  @Test func `slow frames cost a level, and minutes before the next attempt`() throws {
    var governor = try Self.governor()
    var hardware = Hardware(level: 4)
    hardware.fastest = 12
    _ = Self.changes(&governor, &hardware, 1..<3)
    hardware.fastest = 15
    let lowered = Self.changes(&governor, &hardware, 3..<30)
    // 18 ms, 17, and 16.
    #expect(lowered.map(\.level) == [5, 6] && lowered.allSatisfy { $0.reason == .slow })
    hardware.fastest = 3
    let raised = Self.changes(&governor, &hardware, 30..<300)
    #expect(raised.first?.reason == .room && (raised.first?.second ?? 0) >= 140)
  }

  @Test func `two late frames in a row cost one level`() throws {
    var governor = try Self.governor()
    var hardware = Hardware()
    hardware.step = 2.5
    _ = Self.changes(&governor, &hardware, 1..<120)
    let level = governor.level
    #expect(governor.faster == level + 1)
    governor.noteFallen(to: level + 1, at: Instant(seconds: 120))
    #expect(governor.level == level + 1 && governor.reason == .late)
  }

  @Test func `dropped frames and heat cost levels too`() throws {
    var governor = try Self.governor(present: 1)
    var hardware = Hardware(level: 1)
    _ = Self.changes(&governor, &hardware, 1..<4)
    // 9 ms with the first level, 70 ms for some frames: those fit with no level.
    (hardware.dropped, hardware.fastest) = (2, 64)
    let dropped = Self.changes(&governor, &hardware, 4..<5)
    #expect(dropped == [Change(second: 4, level: 7, reason: .late)])
    #expect(governor.isLeast && governor.faster == nil)
    var warm = try Self.governor()
    var hot = Hardware(level: 4)
    hot.heat = .hot
    let cooled = Self.changes(&warm, &hot, 1..<60)
    #expect(cooled.map(\.level) == [5, 6, 7] && cooled.allSatisfy { $0.reason == .heat })
    #expect(zip(cooled.dropFirst(), cooled).allSatisfy { $0.second - $1.second >= 10 })
  }

  /// Key frames are rare: until one comes, the pictures are those of the former level, and prove nothing of the next.
  @Test func `a level is judged by its own pictures`() throws {
    var governor = try Self.governor()
    var hardware = Hardware(level: 4)
    hardware.wait = 10
    let changes = Self.changes(&governor, &hardware, 1..<60)
    #expect(changes.map(\.level) == [2, 1])
    #expect(zip(changes.dropFirst(), changes).allSatisfy { $0.second - $1.second >= 13 })
    #expect(!governor.isLeast)
  }

  @Test func `a level that never takes effect stops nothing else`() throws {
    var governor = try Self.governor()
    var hardware = Hardware(level: 4)
    hardware.wait = .max
    let changes = Self.changes(&governor, &hardware, 1..<10)
    #expect(changes.map(\.level) == [2] && !governor.isLeast && governor.levelAtWork == 4)
    // Late frames are those of level 4 still: level 3 would take longer.
    #expect(governor.faster == 5)
    var late = governor
    late.noteFallen(to: 5, at: Instant(seconds: 10))
    #expect(late.level == 5 && late.faster == 6 && late.reason == .late && late.changes == governor.changes + 1)
    #expect(Self.changes(&governor, &hardware, 10..<60).isEmpty)
    #expect(governor.isLeast && governor.levelAtWork == 4)
    // While nobody watches, nothing can take effect.
    var resting = try Self.governor()
    hardware = Hardware()
    (hardware.wait, hardware.frames) = (.max, 0)
    _ = Self.changes(&resting, &hardware, 1..<60)
    #expect(!resting.isLeast && resting.changes == 0)
  }

  @Test func `streams change one after the other`() throws {
    var governor = try Self.governor()
    var hardware = Hardware(level: 4)
    let refused = Self.changes(&governor, &hardware, 1..<60) { _ in false }
    #expect(refused.isEmpty)
    #expect(Self.changes(&governor, &hardware, 60..<400) { _ in true }.first?.reason == .room)
  }
}
