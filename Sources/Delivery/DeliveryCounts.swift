import Synchronization

/// The counters of the ways out of an event, since the start of the program. Those of one kind are counted together, so that no
/// reload makes a number fall.
package final class DeliveryCounts: Sendable {
  /// A kind of way out.
  package enum Outlet: String, CaseIterable, Sendable {
    case webhook, command, mqtt, push
  }

  /// A cause for which an event is lost: no other attempt follows.
  package enum Loss: String, CaseIterable, Sendable {
    /// The other side does not want it.
    case refused
    /// It is larger than the other side takes.
    case tooLarge = "too-large"
    /// The other side ends each connection at it.
    case ended
  }

  /// The counters of one kind.
  package struct Totals: Hashable, Sendable {
    /// Events that the other side has taken.
    package var sent: UInt64 = 0
    /// Attempts that failed, and events that the other side refused.
    package var failed: UInt64 = 0
    /// Events that were dropped because too many waited.
    package var dropped: UInt64 = 0
    /// Events that are lost, by causes.
    package var lost: [Loss: UInt64] = [:]

    /// Creates totals.
    package init(sent: UInt64 = 0, failed: UInt64 = 0, dropped: UInt64 = 0, lost: [DeliveryCounts.Loss: UInt64] = [:]) {
      self.sent = sent
      self.failed = failed
      self.dropped = dropped
      self.lost = lost
    }

    /// Counts an event that is lost.
    mutating func lose(_ loss: Loss) {
      failed += 1
      lost[loss, default: 0] += 1
    }
  }

  private struct State {
    var totals: [Outlet: Totals] = [:]
    var isConnected = false
  }

  private let state = Mutex(State())

  /// Creates counters of zero.
  package init() {}

  /// The counters of one kind.
  package subscript(outlet: Outlet) -> Totals { state.withLock { $0.totals[outlet] ?? Totals() } }

  /// `true` while an MQTT broker has the program as a client.
  package var isConnected: Bool { state.withLock { $0.isConnected } }

  /// Sets whether an MQTT broker has the program as a client.
  func setConnected(_ isConnected: Bool) { state.withLock { $0.isConnected = isConnected } }

  /// Counts.
  func count(_ outlet: Outlet, _ change: (inout Totals) -> Void) {
    state.withLock { change(&$0.totals[outlet, default: Totals()]) }
  }
}
