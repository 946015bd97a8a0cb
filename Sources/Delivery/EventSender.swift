package import Alerts
package import Platform
import Synchronization

/// Sends each event of a history through one outlet, in order, on a thread of its own. Nothing waits for it.
package final class EventSender: Sendable {
  private let outlet: any EventOutlet
  private let history: AlertHistory
  private let reports: EventQueue<DeliveryReport>
  private let counts: DeliveryCounts
  private let wake: WakeUp
  private let stopping: Interrupt
  /// The delay after a failure.
  private let delays: ClosedRange<Duration>
  private let lastFinished: Atomic<UInt64>
  private let isOver = Atomic(false)

  /// The delays after failures: a second at first, and five minutes at most.
  package static let delays = Duration.seconds(1)...Duration.seconds(300)

  /// Starts to send the events after the one with the number `last`; nil for those from now on.
  ///
  /// - Parameters:
  ///   - reports: takes what becomes of them, for the log.
  ///   - counts: takes their numbers.
  /// - Throws: ``SystemFailure`` if the system has no thread or descriptor left.
  package init(
    _ outlet: some EventOutlet, _ history: AlertHistory, _ reports: EventQueue<DeliveryReport>,
    counts: DeliveryCounts = DeliveryCounts(), after last: UInt64? = nil,
    delays: ClosedRange<Duration> = EventSender.delays
  ) throws(SystemFailure) {
    (self.outlet, self.history, self.reports, self.counts, self.delays) = (outlet, history, reports, counts, delays)
    wake = try WakeUp()
    stopping = try Interrupt()
    let now = history.follow(wake)
    lastFinished = Atomic(last ?? now)
    do throws(SystemFailure) {
      // What hangs in a name server is left behind.
      try NamedThread(outlet.threadName) { [self] in run() }.detach()
    } catch {
      history.unfollow(wake)
      throw error
    }
  }

  /// Ends the thread after its present attempt, which it cuts short. Returns at once.
  package func stop() {
    history.unfollow(wake)
    stopping.fire()
    wake.fire()
  }

  /// The outlet's destination.
  package var destination: [String] { outlet.destination }

  /// `true` once its thread does nothing more.
  package var hasEnded: Bool { isOver.load(ordering: .acquiring) }

  /// The number of the last event that went out, or never will.
  package var position: UInt64 { lastFinished.load(ordering: .relaxed) }

  private func run() {
    defer { isOver.store(true, ordering: .releasing) }
    var waiting = WaitingEvents(history, after: position)
    var backOff = RetryBackOff(delays)
    var log = DeliveryLog(outlet.name)
    while !stopping.hasFired() {
      guard let alert = waiting.first() else {
        wake.wait()
        wake.clear()
        continue
      }
      let dropped = waiting.takeDropped()
      log.dropped(dropped, reports)
      counts.count(outlet.kind) { $0.dropped += dropped }
      guard outlet.wants(alert) else {
        waiting.finish(alert)
        lastFinished.store(alert.id, ordering: .relaxed)
        continue
      }
      let outcome = outlet.deliver(alert, stop: stopping)
      // An answer counts, also if the sender is to end by now. What the end has cut short is no failure.
      if stopping.hasFired(), !outcome.isAnswer { break }
      log.note(outcome.plain, reports)
      counts.count(outlet.kind) { totals in
        switch outcome {
        case .delivered: totals.sent += 1
        case .refused: totals.lose(.refused)
        case .failed, .postponed: totals.failed += 1
        }
      }
      switch outcome {
      case .delivered, .refused:
        waiting.finish(alert)
        lastFinished.store(alert.id, ordering: .relaxed)
        backOff.reset()
      case .failed:
        _ = stopping.wait(until: .now() + backOff.failed())
      case .postponed(_, let delay):
        _ = stopping.wait(until: .now() + max(delay, backOff.failed()))
      }
    }
  }
}

/// The decision which attempts the log tells: changes, and not each attempt.
struct DeliveryLog {
  private let name: String
  /// The last outcome that was told; nil for none but deliveries.
  private var told: DeliveryOutcome?
  private var dropped: UInt64 = 0

  init(_ name: String) { self.name = name }

  /// Notes an attempt.
  mutating func note(_ outcome: DeliveryOutcome, _ reports: EventQueue<DeliveryReport>) {
    switch (outcome, told) {
    case (.delivered, .some):
      let lost = dropped > 0 ? ", without the \(dropped) that were dropped" : ""
      reports.add(DeliveryReport(text: "\(name) takes events again\(lost)", isWarning: false))
      (told, dropped) = (nil, 0)
    case (.refused(let reason), _) where outcome != told:
      reports.add(DeliveryReport(text: "\(name): an event is lost: \(reason)", isWarning: true))
      told = outcome
    // Each attempt may fail in another way, and only the first failure is news.
    case (.failed, .failed): break
    case (.failed(let reason), _):
      reports.add(DeliveryReport(text: "\(name): \(reason); nightjar tries again", isWarning: true))
      told = outcome
    default: break
    }
  }

  /// Notes that `count` events were dropped.
  mutating func dropped(_ count: UInt64, _ reports: EventQueue<DeliveryReport>) {
    guard count > 0 else { return }
    if dropped == 0 {
      let text = "\(name): more than \(WaitingEvents.limit) events wait, so the oldest are dropped"
      reports.add(DeliveryReport(text: text, isWarning: true))
    }
    dropped += count
  }
}
