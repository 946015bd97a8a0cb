package import Alerts

/// The events that wait for one way out: the newest ones of the history after the last one that went out.
///
/// It stores no events. The history has them, and bounds them.
package struct WaitingEvents {
  /// The most events that wait. Of more, the oldest are dropped: an alert of yesterday wakes nobody in time.
  package static let limit = 100

  private let history: AlertHistory
  /// The number of the last event that went out or was dropped.
  private var last: UInt64
  /// The events that were dropped since the last call of ``takeDropped()``.
  private var dropped: UInt64 = 0

  /// Creates a queue of the events after the one with the number `last`.
  package init(_ history: AlertHistory, after last: UInt64) { (self.history, self.last) = (history, last) }

  /// Returns the event that has waited longest; nil if none waits.
  package mutating func first() -> Alert? {
    let part = history.after(last)
    let excess = max(0, part.alerts.count - Self.limit)
    dropped += part.missed + UInt64(excess)
    if let first = part.alerts.dropFirst(excess).first, part.missed > 0 || excess > 0 { last = first.id - 1 }
    return part.alerts.dropFirst(excess).first
  }

  /// Notes that `alert` went out, or never will. It may have been dropped meanwhile.
  package mutating func finish(_ alert: Alert) { last = max(last, alert.id) }

  /// Returns the number of the events that were dropped since the last call.
  package mutating func takeDropped() -> UInt64 {
    defer { dropped = 0 }
    return dropped
  }
}
