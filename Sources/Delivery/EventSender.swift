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
  /// Cuts the present attempt short.
  private let stopping: Interrupt
  /// Ends the thread after the present attempt.
  private let retiring: Interrupt
  /// The sender whose place this one takes, until it has ended.
  private let former: Mutex<EventSender?>
  /// The delay after a failure.
  private let delays: ClosedRange<Duration>
  private let lastFinished: Atomic<UInt64>
  private let isOver = Atomic(false)

  /// The delays after failures: a second at first, and five minutes at most.
  package static let delays = Duration.seconds(1)...Duration.seconds(300)
  /// The time that a former sender has for its present attempt.
  private static let succession = Duration.seconds(40)

  /// Starts to send the events after the one with the number `last`; nil for those from now on.
  ///
  /// - Parameters:
  ///   - reports: takes what becomes of them, for the log.
  ///   - counts: takes their numbers.
  ///   - former: the sender whose place this one takes, which is retired then; this one begins once the former has ended.
  /// - Throws: ``SystemFailure`` if the system has no thread or descriptor left.
  package init(
    _ outlet: some EventOutlet, _ history: AlertHistory, _ reports: EventQueue<DeliveryReport>,
    counts: DeliveryCounts = DeliveryCounts(), after last: UInt64? = nil, following former: EventSender? = nil,
    delays: ClosedRange<Duration> = EventSender.delays
  ) throws(SystemFailure) {
    (self.outlet, self.history, self.reports, self.counts, self.delays) = (outlet, history, reports, counts, delays)
    self.former = Mutex(former)
    wake = try WakeUp()
    stopping = try Interrupt()
    retiring = try Interrupt()
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
    stopping.fire()
    retire()
    retiredFormer?.stop()
  }

  /// Ends the thread after its present attempt, which goes on, so that the event on its way is not sent again by the sender that
  /// follows. Returns at once.
  package func retire() {
    history.unfollow(wake)
    retiring.fire()
    wake.fire()
  }

  /// The outlet's destination.
  package var destination: [String] { outlet.destination }

  /// `true` once its thread, and that of the sender before it, does nothing more.
  package var hasEnded: Bool { isOver.load(ordering: .acquiring) && retiredFormer?.hasEnded != false }

  /// The number of the last event that went out, or never will.
  package var position: UInt64 {
    max(lastFinished.load(ordering: .relaxed), former.withLock { $0 }?.position ?? 0)
  }

  /// The sender before this one, while it goes on. One that is not retired stays, because this one did not take its place.
  private var retiredFormer: EventSender? {
    former.withLock { former in former.flatMap { $0.retiring.hasFired() ? $0 : nil } }
  }

  private func awaitFormer() {
    let deadline = Instant.now() + Self.succession
    while let before = former.withLock({ $0 }) {
      guard !before.hasEnded else {
        lastFinished.store(position, ordering: .relaxed)
        former.withLock { $0 = nil }
        return
      }
      guard .now() < deadline, retiring.wait(until: .now() + .milliseconds(10)) else { return }
    }
  }

  private func run() {
    defer { isOver.store(true, ordering: .releasing) }
    awaitFormer()
    var waiting = WaitingEvents(history, after: position)
    var backOff = RetryBackOff(delays)
    var log = DeliveryLog(outlet.name)
    while !retiring.hasFired() {
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
        _ = retiring.wait(until: .now() + backOff.failed())
      case .postponed(_, let delay):
        _ = retiring.wait(until: .now() + max(delay, backOff.failed()))
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
