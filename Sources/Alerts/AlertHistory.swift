package import Platform
import Synchronization

/// The last events, for all readers.
///
/// One bounded list serves all readers. Each keeps the number of the last event that it has read, so that no reader
/// delays another, and a reader that is too slow learns how many events it has missed.
package final class AlertHistory: Sendable {
  /// The most events that are kept.
  package static let limit = 1000

  /// The events after a given one.
  package struct Part: Sendable {
    /// The events, oldest first.
    package let alerts: [Alert]
    /// The events before them that are not kept any more.
    package let missed: UInt64
  }

  private struct State {
    /// At most ``AlertHistory/limit``.
    var alerts: [Alert] = []
    var lastID: UInt64 = 0
    /// The numbers of the events with which the present alerts began.
    var open: [AlertSubject: UInt64] = [:]
    var acknowledged: Set<UInt64> = []
    var followers: [WakeUp] = []

    mutating func add(_ alert: Alert) {
      if alerts.count == AlertHistory.limit { alerts.removeFirst() }
      alerts.append(alert)
      lastID = alert.id
      switch alert.state {
      case .began: open[alert.subject] = alert.id
      case .ended: if open[alert.subject] == alert.of { open[alert.subject] = nil }
      case .acknowledged: if let of = alert.of { acknowledged.insert(of) }
      }
      if let first = alerts.first?.id, acknowledged.count > AlertHistory.limit {
        acknowledged = acknowledged.filter { $0 >= first }
      }
    }
  }

  private let state = Mutex(State())
  /// Under its lock, events get their numbers and are written. Nothing on the way of frames takes it.
  private let journal: Mutex<AlertJournal?>
  /// The file of the history; nil if the history is in memory only.
  package let path: String?
  /// The pictures of the alerts.
  package let pictures: AlertPictures
  /// Announces each event.
  package let changes = ChangeSignal()

  /// Creates a history in memory.
  package init() {
    journal = Mutex(nil)
    path = nil
    pictures = AlertPictures()
  }

  /// Creates a history in the file at `path`, with the events that the file has. The pictures are in the folder
  /// `path.pictures`.
  ///
  /// - Throws: ``AlertJournal/OpenError``.
  package init(path: String) throws(AlertJournal.OpenError) {
    var alerts: [Alert] = []
    let opened = try AlertJournal(path: path, into: &alerts)
    journal = Mutex(opened)
    self.path = path
    let known = alerts.first.flatMap { first in alerts.last.map { first.id...$0.id } }
    pictures = AlertPictures(directory: "\(path).pictures", known: known)
    state.withLock { state in for alert in alerts { state.add(alert) } }
  }

  /// Fires `wake` after each event from now on. Returns the number of the last event before.
  package func follow(_ wake: WakeUp) -> UInt64 {
    state.withLock { state in
      state.followers.append(wake)
      return state.lastID
    }
  }

  /// Fires `wake` no longer.
  package func unfollow(_ wake: WakeUp) { state.withLock { $0.followers.removeAll { $0 === wake } } }

  /// The number of the newest event; 0 before any.
  package var lastID: UInt64 { state.withLock { $0.lastID } }

  /// The alerts that have begun and not ended.
  package var open: [AlertSubject] { state.withLock { Array($0.open.keys) } }

  /// The errno with which the file system refused the last event; 0 if it took it.
  package var errorNumber: CInt { journal.withLock { $0?.errorNumber ?? 0 } }

  /// Returns the events after the one with the number `id`. A number that no event has had yet, as from another history,
  /// means all of them.
  package func after(_ id: UInt64) -> Part {
    state.withLock { state in
      let id = id > state.lastID ? 0 : id
      guard let first = state.alerts.first else { return Part(alerts: [], missed: 0) }
      let count = state.alerts.reversed().prefix { $0.id > id }.count
      let missed = id > 0 && first.id > id + 1 ? first.id - id - 1 : 0
      return Part(alerts: state.alerts.suffix(count), missed: missed)
    }
  }

  /// Returns `true` if somebody has acknowledged the alert that began with the event `id`.
  package func isAcknowledged(_ id: UInt64) -> Bool { state.withLock { $0.acknowledged.contains(id) } }

  /// Returns the newest events, at most `count`, oldest first.
  package func newest(_ count: Int) -> [Alert] { state.withLock { $0.alerts.suffix(max(0, count)) } }

  /// Returns `alert` with the pictures that there are by now.
  package func illustrated(_ alert: Alert) -> Alert {
    var alert = alert
    let moments = pictures.moments(of: alert.beginning)
    alert.pictures = moments.isEmpty ? nil : moments
    return alert
  }

  /// Removes the pictures whose events are not in the history any more. Waits for the file system.
  package func forgetPictures() { state.withLock { $0.alerts.first?.id }.map { pictures.forget(before: $0) } }

  /// Records decisions: writes each to the file, and then tells it. Returns the events.
  ///
  /// - Parameters:
  ///   - isQuiet: `true` within quiet hours.
  ///   - picture: returns the picture of before an alert; nil if there is none.
  @discardableResult
  package func record(
    _ decisions: [AlertDecision], isQuiet: Bool, at now: Instant = .now(),
    picture: @escaping (AlertCondition) -> [UInt8]? = { _ in nil }
  ) -> [Alert] {
    let time = AlertClock.text(AlertClock.seconds(of: now, at: now))
    return append(
      decisions.map { [pictures] decision in
        { id, open in
          switch decision {
          case .begin(let condition, let suppressed):
            // Before the event is told, so that whoever hears of it gets the picture.
            if let picture = picture(condition) { pictures.store(picture, .before, of: id) }
            return Alert(
              id: id, kind: condition.subject.kind, camera: condition.subject.camera, state: .began, time: time,
              since: AlertClock.text(AlertClock.seconds(of: condition.since, at: now)),
              confidence: (condition.confidence * 100).rounded() / 100, text: condition.text, quiet: isQuiet,
              suppressed: suppressed)
          case .end(let subject, let since):
            return Alert(
              id: id, kind: subject.kind, camera: subject.camera, state: .ended, of: open[subject], time: time,
              since: AlertClock.text(AlertClock.seconds(of: since, at: now)), text: "\(subject.kind.title): over",
              quiet: isQuiet)
          }
        }
      })
  }

  /// Acknowledges the alert that began with the event `id`, or all that are open; returns the events of it. An alert that
  /// was acknowledged before gives none.
  ///
  /// - Throws: ``AcknowledgementError``. Waits for the file system.
  package func acknowledge(_ id: UInt64?, by name: String, at now: Instant = .now()) throws(AcknowledgementError)
    -> [Alert]
  {
    let meant: [Alert] = try state.withLock { state throws(AcknowledgementError) in
      guard let id else {
        let open = Set(state.open.values)
        return state.alerts.filter { open.contains($0.id) && !state.acknowledged.contains($0.id) }
      }
      guard let alert = state.alerts.last(where: { $0.id == id }), alert.state == .began else {
        throw .unknown(id)
      }
      return state.acknowledged.contains(id) ? [] : [alert]
    }
    let time = AlertClock.text(AlertClock.seconds(of: now, at: now))
    return append(
      meant.map { alert in
        { id, _ in
          Alert(
            id: id, kind: alert.kind, camera: alert.camera, state: .acknowledged, of: alert.id, time: time,
            since: alert.since, text: "\(alert.kind.title): acknowledged by \(name.prefix(80))", quiet: alert.quiet)
        }
      })
  }

  /// Tries to write the events again that the file system had no room for, and makes it keep all of them.
  package func settle() {
    journal.withLock { journal in
      journal?.retry()
      journal?.settle(newest(Self.limit))
    }
  }

  @discardableResult
  private func append(_ makers: [(UInt64, [AlertSubject: UInt64]) -> Alert]) -> [Alert] {
    guard !makers.isEmpty else { return [] }
    let added = journal.withLock { journal in
      makers.map { make in
        // Only the journal's owner adds events. Readers of the history do not wait for a picture's file.
        let (id, open) = state.withLock { ($0.lastID + 1, $0.open) }
        let alert = make(id, open)
        journal?.append(alert)
        state.withLock { $0.add(alert) }
        return alert
      }
    }
    changes.announce()
    for wake in state.withLock({ $0.followers }) { wake.fire() }
    return added
  }
}

/// The reason why no alert was acknowledged.
package enum AcknowledgementError: Failure, Hashable {
  /// No alert in the history began with this event.
  case unknown(UInt64)

  /// One line for the user at the terminal.
  package var description: String {
    switch self {
    case .unknown(let id): "no alert began with the event \(id): nightjar ctl events lists them"
    }
  }

  /// The failure's kind.
  package var kind: FailureKind { .noInput }
}
