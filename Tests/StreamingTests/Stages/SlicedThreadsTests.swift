import Media
import Platform
import Streaming
import TestSupport
import Testing

/// The trial of two sliced threads, by traces of loads.
@Suite struct SlicedThreadsTests {
  private static let budget = 1.5

  /// A second of 30 pictures, each of which takes `milliseconds`, in a process that uses `processors`.
  private static func second(
    _ milliseconds: Double, processors: Double = 0.5, pictures: Int = 30, heat: QualityGovernor.Heat = .none
  ) -> QualityGovernor.Measurement {
    var times = LatencyHistogram()
    for _ in 0..<pictures { times.record(Duration(seconds: milliseconds / 1000)) }
    return QualityGovernor.Measurement(
      times: times, interval: FrameRate.thirty.interval, elapsed: Duration(seconds: 1),
      encoderTime: Duration(seconds: milliseconds / 1000 * Double(pictures)),
      processTime: Duration(seconds: processors), heat: heat)
  }

  private struct Change: Equatable {
    var second: Int
    var isRequested: Bool
    var isKept: Bool
  }

  /// Gives the trial these seconds, and returns what changes when. A picture takes `one` or `two` milliseconds.
  private static func changes(
    _ trial: inout SlicedThreads, _ seconds: Range<Int>, one: Double = 8, two: Double = 5, processors: Double = 0.5,
    isSettled: Bool = true
  ) -> [Change] {
    var changes: [Change] = []
    for second in seconds {
      let measurement = Self.second(trial.isRequested ? two : one, processors: processors)
      guard trial.note(measurement, isSettled: isSettled, budget: budget, at: Instant(seconds: Double(second))) else {
        continue
      }
      changes.append(Change(second: second, isRequested: trial.isRequested, isKept: trial.isKept))
    }
    return changes
  }

  @Test func `two threads that bring the last packet forward are kept`() {
    var trial = SlicedThreads()
    #expect(Self.changes(&trial, 0..<9) == [])
    let changes = Self.changes(&trial, 9..<3600)
    #expect(
      changes == [
        Change(second: 9, isRequested: true, isKept: false), Change(second: 33, isRequested: true, isKept: true),
      ])
    guard case .kept(let one, let two)? = trial.outcome else {
      Issue.record("\(trial)")
      return
    }
    #expect(abs(one.seconds - 0.008) < 0.0004 && abs(two.seconds - 0.005) < 0.0003)
  }

  @Test func `two threads that gain little are given up, and tried ever more seldom`() {
    var trial = SlicedThreads()
    let changes = Self.changes(&trial, 0..<7200, two: 7.2)
    let begun = changes.filter(\.isRequested).map(\.second)
    #expect(begun.count == 4 && !trial.isRequested && !changes.contains(where: \.isKept), "\(changes)")
    let pauses = zip(begun, begun.dropFirst()).map { $1 - $0 }
    #expect(zip(pauses, [600, 1200, 2400]).allSatisfy { $0 >= $1 && $0 < $1 + 60 }, "\(pauses)")
    guard case .noGain? = trial.outcome else {
      Issue.record("\(trial)")
      return
    }
  }

  @Test func `kept threads are given up once they gain nothing any more`() {
    var trial = SlicedThreads()
    _ = Self.changes(&trial, 0..<60)
    #expect(trial.isKept)
    // Other work has the second processor.
    let changes = Self.changes(&trial, 60..<240, two: 7.8)
    #expect(changes.map(\.isRequested) == [false] && changes[0].second < 160, "\(changes)")
  }

  @Test func `no trial begins while the effort may still change, above the budget, or on a warm host`() {
    var trial = SlicedThreads()
    #expect(Self.changes(&trial, 0..<600, isSettled: false) == [])
    #expect(Self.changes(&trial, 600..<1200, processors: 1.49) == [])
    for second in 1200..<1300 {
      let warm = Self.second(8, heat: .warm)
      let isNew = trial.note(warm, isSettled: true, budget: Self.budget, at: Instant(seconds: Double(second)))
      #expect(!isNew)
    }
    #expect(Self.changes(&trial, 1300..<1320).map(\.isRequested) == [true])
  }

  @Test func `another effort, a process over its budget and another encoder end the threads`() {
    var effort = SlicedThreads()
    _ = Self.changes(&effort, 0..<60)
    #expect(Self.changes(&effort, 60..<62, isSettled: false).map(\.isRequested) == [false])
    #expect(effort.outcome == .unsettled)
    var budget = SlicedThreads()
    _ = Self.changes(&budget, 0..<60)
    #expect(Self.changes(&budget, 60..<240, processors: 1.6).map(\.isRequested) == [false])
    #expect(budget.outcome == .budget)
    var encoder = SlicedThreads()
    _ = Self.changes(&encoder, 0..<60)
    let ends = [encoder.end(at: Instant(seconds: 60)), encoder.end(at: Instant(seconds: 61))]
    #expect(ends == [true, false] && !encoder.isRequested)
    var governor = SlicedThreads()
    _ = Self.changes(&governor, 0..<60)
    #expect(governor.end(.budget, at: Instant(seconds: 60)) && governor.outcome == .budget)
    // The next trial, of which nothing is known yet.
    _ = Self.changes(&governor, 61..<680)
    #expect(governor.isRequested && !governor.isKept && governor.outcome == nil)
  }

  @Test func `without viewers nothing is judged`() {
    var trial = SlicedThreads()
    _ = Self.changes(&trial, 0..<60)
    for second in 60..<300 {
      let rest = Self.second(0, processors: 0, pictures: 0)
      let isNew = trial.note(rest, isSettled: false, budget: Self.budget, at: Instant(seconds: Double(second)))
      #expect(!isNew)
    }
    #expect(trial.isKept)
  }
}
