import Alerts
import Delivery
import Glibc
import Platform

/// The ways out of an event that run. Confined to the main thread, which waits for none of them.
final class EventOutputs {
  private let history: AlertHistory
  /// The number of the last event before the start of the program.
  private let first: UInt64
  private let reports = EventQueue<DeliveryReport>()
  private var plan: EventOutputPlan?
  private var senders: [EventSender] = []

  init(_ history: AlertHistory) { (self.history, first) = (history, history.lastID) }

  /// Runs the ways out of `plan`. One that is the same as before goes on with the events that wait.
  ///
  /// - Throws: `OpenSSLError`, and ``SystemFailure`` if the system has no thread left; then the former ones are as before.
  func follow(_ plan: EventOutputPlan) throws {
    guard plan != self.plan else { return }
    let isStart = self.plan == nil
    var places = Dictionary(grouping: senders, by: \.destination)
    var new: [EventSender] = []
    do {
      for outlet in try plan.outlets() {
        let former = places[outlet.destination]?.popLast()
        let place = former?.position ?? (isStart ? first : nil)
        new.append(try EventSender(outlet, history, reports, after: place))
      }
    } catch {
      for sender in new { sender.stop() }
      throw error
    }
    stop()
    (self.plan, senders) = (plan, new)
  }

  /// Returns and removes what became of events, for the log.
  func takeReports() -> [DeliveryReport] { reports.take() }

  /// The time that the ways out have for their end at the end of the program, so that no command outlives it.
  private static let patience = Duration.milliseconds(500)

  /// Ends them all at the end of the program. One that hangs, as in a name server, is left behind.
  func end() {
    let ending = senders
    stop()
    let deadline = Instant.now() + Self.patience
    while !ending.allSatisfy(\.hasEnded), .now() < deadline { usleep(5000) }
  }

  /// Ends them all, without waiting.
  func stop() {
    for sender in senders { sender.stop() }
    senders = []
  }
}
