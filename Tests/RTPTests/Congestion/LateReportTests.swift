import Platform
import RTP
import TestSupport
import Testing

/// A viewer that reports after so many bytes, and a report that does not come.
@Suite struct LateReportTests {
  /// An estimate that has got 12 reports, one after each 280 kB, and the log of what left: 350 kB a second.
  private struct RareReports {
    var estimate = BandwidthEstimate(wanted: 2_800_000)
    var log = SentLog()
    /// The hundredths of a second so far, with 3.5 kB each.
    var steps = 0

    var now: Instant { Instant(seconds: 100 + Double(steps) / 100) }

    init() {
      for index in 1...12 {
        // The times between reports differ, or it could be a clock.
        send(80)
        if index == 6 { steps += 50 }
        report(bytes: index * 280_000)
      }
    }

    mutating func send(_ count: Int) {
      for _ in 0..<count {
        steps += 1
        log.note(position: Int64(log.packets) + 1, packets: 1, bytes: 3500, at: now)
        estimate.takeSilence(after: log, at: now)
      }
    }

    mutating func report(bytes: Int) {
      estimate.take(
        ReceptionSample(
          delivered: bytes, reached: bytes, age: .milliseconds(50), waiting: .milliseconds(50),
          outstanding: log.bytes - bytes), at: now)
    }
  }

  @Test func `a late report lowers the estimate, and once a report was lost, only one that is overdue does`() {
    var viewer = RareReports()
    viewer.send(95)
    #expect(viewer.estimate.limit == nil, "late by no more than losses explain")
    viewer.send(20)
    #expect(viewer.estimate.limit ?? .infinity < 2_600_000 && viewer.estimate.decreases > 0)
    // It was lost: the next one tells of twice the bytes, and of no queue.
    viewer.send(45)
    viewer.report(bytes: 14 * 280_000)
    #expect(viewer.estimate.limit == nil)
    let decreases = viewer.estimate.decreases
    viewer.send(160)
    #expect(viewer.estimate.limit == nil && viewer.estimate.decreases == decreases)
    viewer.send(40)
    #expect(viewer.estimate.limit ?? .infinity < 1_500_000)
  }
}
