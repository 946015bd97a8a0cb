import Alerts
import Delivery
import Platform
import Synchronization
import TestSupport
import Testing

/// The end of a sender while an event is on its way.
@Suite struct EventSenderTests {
  /// A way out whose answer comes only once its sender is to end.
  private final class LateOutlet: EventOutlet {
    let outcome: DeliveryOutcome
    /// `true` once an event is on its way.
    let hasBegun = Atomic(false)

    init(_ outcome: DeliveryOutcome) { self.outcome = outcome }

    var kind: DeliveryCounts.Outlet { .webhook }
    var name: String { "late" }
    var destination: [String] { ["late"] }
    var threadName: String { "nj-late" }

    func deliver(_ alert: Alert, stop: borrowing Interrupt) -> DeliveryOutcome {
      hasBegun.store(true, ordering: .releasing)
      _ = stop.wait(until: .now() + .seconds(60))
      return outcome
    }
  }

  /// Ends a sender while its event is on its way; returns its figures, its lines and its position.
  private static func end(
    _ outcome: DeliveryOutcome
  ) throws -> (totals: DeliveryCounts.Totals, lines: [String], position: UInt64) {
    let (history, reports, counts) = (AlertHistory(), EventQueue<DeliveryReport>(), DeliveryCounts())
    let outlet = LateOutlet(outcome)
    let sender = try EventSender(outlet, history, reports, counts: counts, after: 0)
    let condition = AlertCondition(.noise, camera: "nursery", since: .now(), text: "noise")
    history.record([.begin(condition, suppressed: 0)], isQuiet: false)
    try #require(eventually { outlet.hasBegun.load(ordering: .acquiring) })
    sender.stop()
    try #require(eventually { sender.hasEnded })
    return (counts[.webhook], reports.take().map(\.text), sender.position)
  }

  @Test func `an answer that comes while the sender ends is counted and told`() throws {
    let refused = try Self.end(.refused("it answers 410"))
    #expect(refused.totals == DeliveryCounts.Totals(sent: 0, failed: 1, dropped: 0, lost: [.refused: 1]))
    #expect(refused.lines == ["late: an event is lost: it answers 410"] && refused.position == 1)
    let delivered = try Self.end(.delivered)
    #expect(delivered.totals == DeliveryCounts.Totals(sent: 1, failed: 0, dropped: 0))
    #expect(delivered.lines.isEmpty && delivered.position == 1)
  }

  /// A way out that answers once it is let go, or fails once its sender is to end.
  private final class HeldOutlet: EventOutlet {
    /// The numbers of the events whose attempt has begun.
    let begun = Mutex<[UInt64]>([])
    let mayAnswer = Atomic(false)

    var kind: DeliveryCounts.Outlet { .webhook }
    var name: String { "held" }
    var destination: [String] { ["held"] }
    var threadName: String { "nj-held" }

    func deliver(_ alert: Alert, stop: borrowing Interrupt) -> DeliveryOutcome {
      begun.withLock { $0.append(alert.id) }
      while !mayAnswer.load(ordering: .acquiring) {
        guard stop.wait(until: .now() + .milliseconds(5)) else { return .failed("nightjar ends") }
      }
      return .delivered
    }
  }

  @Test func `a sender begins once the event on the way of the former one has arrived, and sends the next`()
    throws
  {
    let (history, reports, counts) = (AlertHistory(), EventQueue<DeliveryReport>(), DeliveryCounts())
    let (first, second) = (HeldOutlet(), HeldOutlet())
    func begin(_ kind: AlertKind) {
      let condition = AlertCondition(kind, camera: "nursery", since: .now(), text: "noise")
      history.record([.begin(condition, suppressed: 0)], isQuiet: false)
    }
    let former = try EventSender(first, history, reports, counts: counts, after: 0)
    begin(.noise)
    try #require(eventually { first.begun.withLock { $0 } == [1] })
    // As a reload does that changes the key of a webhook, twice.
    let other = try EventSender(second, history, reports, counts: counts, after: former.position, following: former)
    former.retire()
    let next = try EventSender(second, history, reports, counts: counts, after: other.position, following: other)
    other.retire()
    begin(.crying)
    second.mayAnswer.store(true, ordering: .releasing)
    #expect(!eventually(within: 0.5) { !second.begun.withLock { $0 }.isEmpty })
    #expect(!former.hasEnded && !other.hasEnded)
    first.mayAnswer.store(true, ordering: .releasing)
    #expect(eventually { next.position == 2 })
    #expect(first.begun.withLock { $0 } == [1] && second.begun.withLock { $0 } == [2])
    #expect(counts[.webhook] == DeliveryCounts.Totals(sent: 2) && reports.take().isEmpty)
    #expect(former.hasEnded && other.hasEnded)
    next.stop()
    #expect(eventually { next.hasEnded })
  }

  @Test func `a sender that ends before its turn ends the former one that it follows, unless that goes on`() throws {
    let (history, reports) = (AlertHistory(), EventQueue<DeliveryReport>())
    let (first, second) = (HeldOutlet(), HeldOutlet())
    let former = try EventSender(first, history, reports, after: 0)
    history.record(
      [.begin(AlertCondition(.noise, camera: "nursery", since: .now(), text: "noise"), suppressed: 0)], isQuiet: false)
    try #require(eventually { !first.begun.withLock { $0 }.isEmpty })
    // A reload that fails.
    let failed = try EventSender(second, history, reports, after: former.position, following: former)
    failed.stop()
    #expect(eventually { failed.hasEnded } && !former.hasEnded)
    let next = try EventSender(second, history, reports, after: former.position, following: former)
    former.retire()
    next.stop()
    #expect(eventually { next.hasEnded } && former.hasEnded)
    #expect(second.begun.withLock { $0 }.isEmpty)
  }

  @Test func `an attempt that the end cuts short is no failure`() throws {
    let failed = try Self.end(.failed("nightjar ends"))
    #expect(failed.totals == DeliveryCounts.Totals(sent: 0, failed: 0, dropped: 0))
    #expect(failed.lines.isEmpty && failed.position == 0)
  }
}
