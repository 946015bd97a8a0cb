import Media
import Platform
import RTP
import TestSupport
import Testing

/// When a NACK is answered, by what reports say of the way.
@Suite struct ReportedPathTests {
  private static func path(
    roundTrip: Int64, jitter: Int64 = 0, loss: Double = 0, before: Int64? = nil
  ) -> ReportedPath {
    var path = ReportedPath()
    if let before { path.take(roundTrip: .milliseconds(before), jitter: .zero, fractionLost: 0) }
    for _ in 0..<40 {
      path.take(roundTrip: .milliseconds(roundTrip), jitter: .milliseconds(jitter), fractionLost: loss)
    }
    return path
  }

  /// When a packet sent at 0 is retransmitted, in ms, where a NACK of it comes every millisecond.
  private static func answers(
    _ path: ReportedPath, _ limits: RetransmissionLimiter.Limits = .init(), until limit: Int64 = 500
  ) -> [Int64] {
    var limiter = RetransmissionLimiter(limits)
    return (0..<limit).filter {
      limiter.allows(7, bytes: 1000, sent: .zero, path: path, at: Instant.zero + .milliseconds($0))
    }
  }

  @Test func `the first NACK is answered if nothing is known, or if packets keep their order`() {
    #expect(Self.answers(ReportedPath()) == [0, 10, 20])
    // Not again before the answer can have come.
    #expect(Self.answers(Self.path(roundTrip: 40)) == [0, 40, 80])
    #expect(Self.answers(Self.path(roundTrip: 4)) == [0, 10, 20])
    #expect(Self.answers(Self.path(roundTrip: 40, jitter: 2)) == [0, 48, 96])
  }

  @Test func `under jitter a packet that others have overtaken is waited for`() {
    #expect(Self.answers(Self.path(roundTrip: 60, jitter: 20)) == [140, 280, 420])
  }

  @Test func `a receiver that waits itself is answered at once, and after each shortest round trip`() {
    let limits = RetransmissionLimiter.Limits(triesPerPacket: 4, receiverWaits: true)
    #expect(Self.answers(Self.path(roundTrip: 60, jitter: 20), limits) == [0, 60, 120, 180])
    #expect(Self.answers(Self.path(roundTrip: 2, jitter: 20), limits) == [0, 10, 20, 30])
    #expect(Self.answers(Self.path(roundTrip: 60), .browser).count == 9, "ten at most, every 60 ms of 500")
    #expect(Self.answers(Self.path(roundTrip: 20, loss: 0.3), .browser) == [])
  }

  @Test func `loss with a queue that has grown is congestion, loss alone is not`() {
    #expect(!Self.path(roundTrip: 20, loss: 0.05).isCongested)
    #expect(!Self.path(roundTrip: 20, loss: 0.12).isCongested)
    #expect(!Self.path(roundTrip: 250, loss: 0, before: 20).isCongested)
    #expect(Self.path(roundTrip: 250, loss: 0.05, before: 20).isCongested)
    #expect(Self.path(roundTrip: 20, loss: 0.3).isCongested)
    #expect(Self.answers(Self.path(roundTrip: 250, loss: 0.05, before: 20)) == [])
    // It is over once a report says so.
    var path = Self.path(roundTrip: 250, loss: 0.05, before: 20)
    path.take(roundTrip: .milliseconds(20), jitter: .zero, fractionLost: 0)
    #expect(!path.isCongested)
  }

  @Test func `jitter by itself makes no queue`() {
    var random = SeededGenerator(seed: 5)
    var path = ReportedPath()
    for _ in 0..<100 {
      // 20 ms and up to 30 each way.
      path.take(
        roundTrip: .milliseconds(20 + .random(in: 0...60, using: &random)), jitter: .milliseconds(12),
        fractionLost: 0.05)
    }
    #expect(!path.isCongested)
  }

  @Test func `receivers are new once, unless they said BYE or were silent for long`() throws {
    let viewer = Viewer()
    func isNew(_ source: UInt32, at seconds: Double) throws -> Bool {
      let bytes = try written { try $0.appendReceiverReport(sender: source) }
      return try viewer.receive(bytes, at: Instant(seconds: seconds)).newReceiver
    }
    #expect(try isNew(5, at: 0) && !isNew(5, at: 5) && isNew(6, at: 5) && !isNew(5, at: 100))
    _ = try viewer.receive(
      written {
        try $0.appendReceiverReport(sender: 5)
        try $0.appendGoodbye([SynchronizationSource(5)])
      }, at: Instant(seconds: 101))
    #expect(try isNew(5, at: 102) && isNew(6, at: 300))
    // A group larger than is remembered, whose members all report again and again.
    var asked = 0
    for round in 0..<10 {
      for source in UInt32(100)..<400 where try isNew(source, at: 400 + Double(round) * 5) { asked += 1 }
    }
    #expect(asked <= 64, "\(asked)")
    // Some name themselves after our source.
    viewer.feedback.changeMedia(to: 77, at: Instant(seconds: 1000))
    #expect(try !isNew(78, at: 1003) && isNew(79, at: 1030))
    #expect(viewer.feedback.media == 77)
  }
}
