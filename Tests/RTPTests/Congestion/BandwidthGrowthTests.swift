import Platform
import RTP
import TestSupport
import Testing

/// The growth of the estimate after a decrease, sample by sample.
@Suite struct BandwidthGrowthTests {
  @Test(arguments: [(Duration.zero, false), (ReceptionSample.acknowledgementDelay, true)])
  func `an acknowledgement that is held back is no queue`(_ delay: Duration, _ grows: Bool) throws {
    var estimate = BandwidthEstimate(wanted: 3_000_000)
    estimate.bound(to: 1_000_000, at: Instant(seconds: 100))
    for step in 0..<300 {
      // The end of each picture is acknowledged 40 ms after the round trip of 51 ms.
      estimate.take(
        ReceptionSample(
          delivered: step * 12_000, age: .milliseconds(step == 0 ? 51 : 70), waiting: .milliseconds(103),
          outstanding: 24_000, jitter: delay), at: Instant(seconds: 100 + Double(step) / 30))
    }
    let limit = try #require(estimate.limit)
    #expect(grows ? limit > 2_500_000 : limit == 1_000_000, "\(limit)")
  }

  @Test func `growth does not leap over the rate at which the path was full, and is twice as fast beyond it`() {
    var estimate = BandwidthEstimate(wanted: 3_000_000)
    var (seconds, bytes) = (0.0, 0)
    /// Returns the limit after so many seconds in which what is sent at the limit has arrived.
    func step(_ elapsed: Double) -> Double {
      seconds += elapsed
      bytes += Int((estimate.limit ?? 3_000_000) * elapsed / 8)
      estimate.take(
        ReceptionSample(delivered: bytes, age: .milliseconds(50), waiting: .milliseconds(50), outstanding: 0),
        at: Instant(seconds: seconds))
      return estimate.limit ?? 0
    }
    for _ in 0..<20 { _ = step(0.1) }
    // A browser has seen that the path was full at 1 Mbit/s.
    estimate.take(receiverLimit: 3_000_000, sent: 3_000_000, at: Instant(seconds: seconds))
    estimate.take(receiverLimit: 900_000, sent: 3_000_000, at: Instant(seconds: seconds))
    #expect(estimate.limit == 900_000)
    // A report after 3 s, and another one.
    #expect(step(3) == 930_000)
    #expect(step(3) < 1_050_000)
    // More than the path took when it was full arrives, and there is no queue.
    var growth: [Double] = []
    for _ in 0..<100 where estimate.limit ?? 0 < 2_500_000 {
      let before = estimate.limit ?? 0
      growth.append((step(0.2) - before) * 5)
    }
    #expect(growth.first ?? 0 < 50_000 && growth.max() ?? 0 > 450_000, "\(growth)")
    // A limit that is set once the path is open grows as after a decrease: nothing has shown that the path takes more.
    for _ in 0..<400 where estimate.limit != nil { _ = step(0.2) }
    #expect(estimate.limit == nil)
    estimate.bound(to: 1_000_000, at: Instant(seconds: seconds))
    for _ in 0..<4 { _ = step(0.2) }
    let before = estimate.limit ?? 0
    #expect(before > 1_000_000)
    #expect(step(0.2) - before < 70_000)
  }
}
