package import Platform

/// A decision about an alert.
package enum AlertDecision: Hashable, Sendable {
  /// The alert begins. `suppressed` beginnings before it were left out.
  case begin(AlertCondition, suppressed: Int)
  /// The alert is over; its condition existed since `since`.
  case end(AlertSubject, since: Instant)
}

/// The rule by which conditions become alerts: at most one begins each minute for each kind and camera, and each alert that
/// was told to begin is told to end.
package struct AlertPolicy: Sendable {
  private struct Entry {
    /// `true` if the last decision was that the alert begins.
    var isTold = false
    var isPresent = false
    var since = Instant.zero
    var lastBegan: Instant?
    var suppressed = 0
  }

  /// The least time between two beginnings of the same alert.
  package static let interval = Duration.seconds(60)
  /// The time after the start in which no alert of the former run ends: the conditions are not known yet.
  package static let settling = Duration.seconds(10)

  private var entries: [AlertSubject: Entry] = [:]
  private let settled: Instant

  /// Creates a policy.
  ///
  /// - Parameter open: the alerts that a former run has told to begin and not to end.
  package init(open: some Sequence<AlertSubject> = [], at now: Instant) {
    settled = now + Self.settling
    for subject in open { entries[subject] = Entry(isTold: true, since: now) }
  }

  /// Looks at the present conditions, all of them; called about once a second.
  package mutating func look(_ conditions: [AlertCondition], at now: Instant) -> [AlertDecision] {
    var decisions: [AlertDecision] = []
    var present: Set<AlertSubject> = []
    for condition in conditions where present.insert(condition.subject).inserted {
      var entry = entries[condition.subject] ?? Entry()
      let isNew = !entry.isPresent
      if isNew, !entry.isTold { entry.since = condition.since }
      entry.isPresent = true
      if !entry.isTold {
        if let last = entry.lastBegan, now - last < Self.interval {
          if isNew { entry.suppressed += 1 }
        } else {
          // A condition that was left out at first, and lasts, is told late and counts once.
          let suppressed = isNew ? entry.suppressed : max(0, entry.suppressed - 1)
          decisions.append(.begin(condition, suppressed: suppressed))
          (entry.isTold, entry.lastBegan, entry.suppressed) = (true, now, 0)
        }
      }
      entries[condition.subject] = entry
    }
    guard now >= settled else { return decisions }
    for (subject, entry) in entries.sorted(by: { $0.key.order < $1.key.order }) where !present.contains(subject) {
      if entry.isTold { decisions.append(.end(subject, since: entry.since)) }
      entries[subject]?.isTold = false
      entries[subject]?.isPresent = false
      // The table holds no cameras that are gone for long. What was left out is told with the next alert, for some minutes.
      let kept = entry.suppressed > 0 ? Self.interval + Self.interval + Self.interval : Self.interval
      if let last = entry.lastBegan, now - last < kept { continue }
      entries[subject] = nil
    }
    return decisions
  }
}

extension AlertSubject {
  /// A text by which the order of decisions is the same each time.
  fileprivate var order: String { "\(camera ?? "") \(kind.rawValue)" }
}
