import Alerts
import Platform
import Synchronization
import TestSupport
import Testing

@testable import Delivery

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

  @Test func `An answer that comes while the sender ends is counted and told`() throws {
    let refused = try Self.end(.refused("it answers 410"))
    #expect(refused.totals == DeliveryCounts.Totals(sent: 0, failed: 1, dropped: 0, lost: [.refused: 1]))
    #expect(refused.lines == ["late: an event is lost: it answers 410"] && refused.position == 1)
    let delivered = try Self.end(.delivered)
    #expect(delivered.totals == DeliveryCounts.Totals(sent: 1, failed: 0, dropped: 0))
    #expect(delivered.lines.isEmpty && delivered.position == 1)
  }

  @Test func `An attempt that the end cuts short is no failure`() throws {
    let failed = try Self.end(.failed("nightjar ends"))
    #expect(failed.totals == DeliveryCounts.Totals(sent: 0, failed: 0, dropped: 0))
    #expect(failed.lines.isEmpty && failed.position == 0)
  }
}
