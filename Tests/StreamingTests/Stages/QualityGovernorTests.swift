import Media
import Platform
import Streaming
import TestSupport
import Testing

/// The choice of the effort, by traces of loads.
@Suite struct QualityGovernorTests {
  private static let rungs = [1, 1.8, 3.3, 4.8, 7.5].enumerated().map { index, cost in
    QualityGovernor.Rung(effort: EncodingEffort(rawValue: index), cost: cost)
  }

  private static func governor(start: Int = 1, budget: Double = 2) -> QualityGovernor {
    QualityGovernor(rungs: rungs, start: start, budget: budget)
  }

  /// A stream of 30 frames a second, whose frames take `least` milliseconds at the lowest rung.
  private struct Load {
    var least = 2.0
    var frames = 30
    /// The encode time of one of the frames in milliseconds, whatever the rung.
    var outlier: Double?
    /// The processors that the rest of the process uses.
    var others = 0.1
    var dropped = 0
    var heat = QualityGovernor.Heat.none

    func measurement(_ rung: QualityGovernor.Rung) -> QualityGovernor.Measurement {
      var times = LatencyHistogram()
      let each = least * rung.cost / 1000
      for index in 0..<frames {
        times.record(Duration(seconds: index == 0 ? (outlier.map { $0 / 1000 } ?? each) : each))
      }
      let encoder = Duration(seconds: each * Double(frames))
      return QualityGovernor.Measurement(
        times: times, interval: FrameRate.thirty.interval, elapsed: Duration(seconds: 1), encoderTime: encoder,
        processTime: encoder + Duration(seconds: others), dropped: dropped, heat: heat)
    }
  }

  private struct Change: Equatable {
    var second: Int
    var rung: Int
    var reason: QualityGovernor.Reason
  }

  /// Gives the governor the loads of these seconds, and returns what changes when.
  private static func changes(
    _ governor: inout QualityGovernor, _ seconds: Range<Int>, claim: (Instant) -> Bool = { _ in true },
    _ load: (Int) -> Load
  ) -> [Change] {
    var changes: [Change] = []
    for second in seconds {
      let now = Instant(seconds: Double(second))
      let measurement = load(second).measurement(governor.rungs[governor.rung])
      guard governor.note(measurement, at: now, claim: { claim(now) }), let reason = governor.reason else { continue }
      changes.append(Change(second: second, rung: governor.rung, reason: reason))
    }
    return changes
  }

  @Test func `with room the effort grows within seconds of the start`() {
    var governor = Self.governor()
    let changes = Self.changes(&governor, 1..<60) { _ in Load(least: 1.5) }
    #expect(changes.map(\.rung) == [3, 4])
    #expect(changes.first?.second ?? 99 <= 5)
    #expect(changes.last?.second ?? 99 <= 20)
    #expect(changes.allSatisfy { $0.reason == .room })
    #expect(governor.fallback == EncodingEffort(rawValue: 3))
  }

  /// 4 ms at ultrafast: superfast takes 7.2 ms, veryfast 13.2 ms, faster 19.2 ms of the 16.7 ms that are allowed.
  @Test func `the effort is the greatest that encodes within half a frame interval`() {
    var governor = Self.governor()
    #expect(Self.changes(&governor, 1..<1000) { _ in Load(least: 4) }.map(\.rung) == [2])
    #expect(governor.percentile99.map { $0.seconds > 0.012 && $0.seconds < 0.015 } == true)
  }

  /// Superfast uses 0.27 processors of this stream's, veryfast would use 0.5.
  @Test func `the effort is the greatest that keeps the budget of processors, whoever uses them`() {
    var governor = Self.governor(budget: 0.5)
    #expect(Self.changes(&governor, 1..<1000) { _ in Load(least: 5) }.isEmpty)
    // Viewers come.
    let lowered = Self.changes(&governor, 1000..<1100) { _ in Load(least: 5, others: 0.45) }
    #expect(lowered.map(\.rung) == [0] && lowered.map(\.reason) == [.budget])
    #expect(lowered.first?.second ?? 9999 <= 1012)
  }

  @Test func `two late frames in a row cost one rung, and minutes before the next attempt`() {
    var governor = Self.governor()
    _ = Self.changes(&governor, 1..<120) { _ in Load(least: 4) }
    #expect(governor.rung == 2)
    governor.noteFallen(at: Instant(seconds: 120))
    #expect((governor.rung, governor.reason) == (1, .late))
    let raised = Self.changes(&governor, 120..<600) { _ in Load(least: 4) }
    #expect(raised.map(\.rung) == [2])
    #expect((240...250).contains(raised.first?.second ?? 0))
  }

  @Test func `frames that were dropped cost as many rungs as their time demands`() {
    var governor = Self.governor(start: 4)
    var load = Load(least: 2)
    _ = Self.changes(&governor, 1..<4) { _ in load }
    (load.outlier, load.dropped) = (100, 2)
    // 100 ms on the highest rung are 13 ms on the lowest.
    #expect(Self.changes(&governor, 4..<5) { _ in load } == [Change(second: 4, rung: 0, reason: .late)])
  }

  @Test func `slow frames cost a rung, one of them does not`() {
    var governor = Self.governor(start: 2)
    #expect(Self.changes(&governor, 1..<60) { Load(least: 4, outlier: $0 == 30 ? 30 : nil) }.isEmpty)
    let changes = Self.changes(&governor, 60..<80) { _ in Load(least: 6) }
    #expect(changes.map(\.rung) == [1] && changes[0].reason == .slow)
  }

  @Test func `an attempt that fails doubles the wait for the next`() {
    var governor = Self.governor(start: 2)
    governor.noteFallen(at: Instant(seconds: 1))
    // There is room at superfast only: on veryfast frames are late, because another program fills the caches.
    var raised: [Int] = []
    var lowered: [Int] = []
    for second in 2..<4000 {
      let load = Load(least: governor.rung == 2 ? 6 : 3)
      let changes = Self.changes(&governor, second..<second + 1) { _ in load }
      for change in changes where change.reason == .room { raised.append(change.second) }
      for change in changes where change.reason != .room { lowered.append(change.second) }
    }
    let waits = zip(raised.dropFirst(), lowered).map { $0 - $1 }
    #expect(waits.count >= 3)
    for (wait, expected) in zip(waits, [240, 480, 960, 1800]) { #expect((expected...expected + 10).contains(wait)) }
  }

  @Test func `heat takes rung after rung, and warmth keeps the effort from growing`() {
    var governor = Self.governor(start: 3)
    let hot = Self.changes(&governor, 1..<60) { _ in Load(least: 1, heat: .hot) }
    #expect(hot.map(\.rung) == [2, 1, 0] && hot.allSatisfy { $0.reason == .heat })
    #expect(zip(hot.dropFirst(), hot).allSatisfy { $0.second - $1.second >= 10 })
    #expect(Self.changes(&governor, 60..<1000) { _ in Load(least: 1, heat: .warm) }.isEmpty)
    #expect(Self.changes(&governor, 1000..<1200) { _ in Load(least: 1) }.first?.reason == .room)
  }

  @Test func `without frames nothing is judged, and what was measured before a pause does not count`() {
    var governor = Self.governor()
    _ = Self.changes(&governor, 1..<4) { _ in Load(least: 1) }
    #expect(Self.changes(&governor, 4..<5000) { _ in Load(frames: 0) }.isEmpty)
    #expect(governor.percentile99 == nil && governor.processors == nil)
    #expect(Self.changes(&governor, 5000..<5003) { _ in Load(least: 1) }.isEmpty)
  }

  /// Veryfast uses 0.4 processors, and the rest of the process 0.1.
  @Test func `while the encode times change by something else than the effort, nothing is judged`() {
    var governor = Self.governor(start: 2, budget: 0.3)
    #expect(Self.changes(&governor, 1..<3) { _ in Load(least: 4) }.isEmpty)
    governor.settle(until: Instant(seconds: 30))
    #expect(Self.changes(&governor, 3..<30) { _ in Load(least: 4) }.isEmpty)
    #expect(governor.percentile99 == nil && governor.processors == nil)
    let first = Self.changes(&governor, 30..<40) { _ in Load(least: 4) }.first
    #expect(first == Change(second: 32, rung: 1, reason: .budget))
  }

  @Test func `streams on one budget change one after the other`() {
    var governors = [Self.governor(budget: 1.2), Self.governor(budget: 1.2)]
    var turn = 0.0
    var changed: [(stream: Int, second: Int)] = []
    for second in 1..<400 {
      for stream in 0..<2 {
        let other = governors[1 - stream]
        let others = 2.0 * other.rungs[other.rung].cost * 30 / 1000
        let claim: (Instant) -> Bool = { _ in
          guard Double(second) >= turn else { return false }
          turn = Double(second) + 6
          return true
        }
        let changes = Self.changes(&governors[stream], second..<second + 1, claim: claim) { _ in
          Load(least: 2, others: others)
        }
        changed += changes.map { (stream, $0.second) }
      }
    }
    #expect(changed.count >= 2)
    #expect(zip(changed.dropFirst(), changed).allSatisfy { $0.second - $1.second >= 6 })
    let use = governors.map { 2.0 * $0.rungs[$0.rung].cost * 30 / 1000 }.reduce(0, +)
    #expect(use <= 1.2)
  }
}

@Suite struct EncodeLatenessTests {
  @Test func `the second late frame in a row counts, and each second one after that`() {
    var lateness = EncodeLateness()
    let late = [20, 40, 20, 40, 40, 40, 40, 33, 40].map { milliseconds in
      lateness.note(Duration.milliseconds(milliseconds), interval: FrameRate.thirty.interval)
    }
    #expect(late == [false, false, false, false, true, false, true, false, false])
  }
}
