package import Alerts
package import Platform

/// A way for one event to another system, used by one thread.
package protocol EventOutlet: Sendable {
  /// The kind by which its events are counted.
  var kind: DeliveryCounts.Outlet { get }
  /// The outlet for people, as in `webhook hooks.example.org`: without secrets.
  var name: String { get }
  /// The whole destination, secrets included, by which a reload finds the outlet again.
  var destination: [String] { get }
  /// The name of its thread.
  var threadName: String { get }

  /// Returns `false` for an event that is passed over, now that its turn has come.
  func wants(_ alert: Alert) -> Bool

  /// Tries to deliver an event, and returns early once `stop` has fired. Blocks.
  func deliver(_ alert: Alert, stop: borrowing Interrupt) -> DeliveryOutcome
}

extension EventOutlet {
  package func wants(_ alert: Alert) -> Bool { true }
}

/// The result of one attempt to deliver an event.
package enum DeliveryOutcome: Hashable, Sendable {
  /// The other side has it.
  case delivered
  /// The other side does not want it, and another attempt would end in the same way.
  case refused(String)
  /// There is no answer now, and a later attempt may succeed.
  case failed(String)
  /// The other side wants no attempt within that time.
  case postponed(String, Duration)

  /// `true` if the other side has decided, so that no other attempt follows.
  var isAnswer: Bool {
    switch self {
    case .delivered, .refused: true
    case .failed, .postponed: false
    }
  }

  /// The same without a time.
  var plain: DeliveryOutcome {
    if case .postponed(let reason, _) = self { .failed(reason) } else { self }
  }
}

/// A line about a way out, for the log.
package struct DeliveryReport: Hashable, Sendable {
  /// The line.
  package let text: String
  /// `true` if events are late or lost.
  package let isWarning: Bool

  /// Creates a line.
  package init(text: String, isWarning: Bool) { (self.text, self.isWarning) = (text, isWarning) }
}
