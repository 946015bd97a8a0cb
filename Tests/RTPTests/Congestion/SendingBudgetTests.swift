import Platform
import RTP
import TestSupport
import Testing

/// The spreading of packets, and the debt of a path that got more than it takes.
@Suite struct SendingBudgetTests {
  /// Sends as many packets of 1250 bytes as may leave in each millisecond. Returns the bits a second that left.
  private func rate(_ budget: inout SendingBudget, limit: Double, from begin: Double, seconds: Double) -> Double {
    var bytes = 0
    for step in 1...Int(seconds * 1000) {
      budget.refill(limit: limit, at: Instant(seconds: begin + Double(step) / 1000))
      let end = budget.end(from: 0, to: 100) { _ in 1250 }
      budget.noteSent(bytes: end * 1250)
      bytes += end * 1250
    }
    return Double(bytes) * 8 / seconds
  }

  @Test(arguments: [60_000.0, 1_000_000, 20_000_000]) func `packets leave at one and a half times the limit`(
    _ limit: Double
  ) {
    var budget = SendingBudget()
    budget.refill(limit: limit, at: Instant(seconds: 10))
    let rate = rate(&budget, limit: limit, from: 10, seconds: 4)
    #expect(abs(rate / limit - 1.5) < 0.05)
  }

  @Test func `a path that got more than it takes is overdrawn until that is made good`() {
    var budget = SendingBudget()
    budget.refill(limit: 1_000_000, at: Instant(seconds: 10))
    // Half as much again as it takes, for so long that the debt reaches its end.
    _ = rate(&budget, limit: 1_000_000, from: 10, seconds: 1)
    #expect(!budget.isOverdrawn)
    _ = rate(&budget, limit: 1_000_000, from: 11, seconds: 0.5)
    #expect(budget.isOverdrawn)
    budget.refill(limit: 1_000_000, at: Instant(seconds: 11.8))
    #expect(budget.isOverdrawn)
    budget.refill(limit: 1_000_000, at: Instant(seconds: 12.6))
    #expect(!budget.isOverdrawn)
  }

  @Test func `a pause saves no more than a large picture takes`() {
    var budget = SendingBudget()
    budget.refill(limit: 1_000_000, at: Instant(seconds: 10))
    budget.refill(limit: 1_000_000, at: Instant(seconds: 100))
    // Packets at once: the bytes of two, and the one that exceeds them.
    #expect(budget.end(from: 5, to: 100) { _ in 1250 } == 8)
  }
}
