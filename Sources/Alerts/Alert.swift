/// One event of the history: an alert that begins, ends or is acknowledged.
package struct Alert: Codable, Hashable, Sendable {
  /// The change that the event reports.
  package enum State: String, CaseIterable, Codable, Hashable, Sendable {
    /// The alert begins.
    case began
    /// The alert that ``Alert/of`` names is over.
    case ended
    /// Somebody has acknowledged the alert that ``Alert/of`` names.
    case acknowledged
  }

  /// The number of the event: each is greater than the ones before it, also after a restart of the program.
  package var id: UInt64
  /// The kind of the alert.
  package var kind: AlertKind
  /// The camera's name; nil for an alert of the whole program.
  package var camera: String?
  /// The change.
  package var state: State
  /// The number of the event with which the alert began; nil for that event itself.
  package var of: UInt64?
  /// The time of the event, as in `2026-11-21T12:03:04Z`.
  package var time: String
  /// The time since which the condition has existed, in the same form.
  package var since: String
  /// The confidence of the detector, 0…1. It is 1 for a condition that is measured and not guessed.
  package var confidence: Double
  /// One line in words, for people, of ``textLimit`` Unicode scalars at most.
  package var text: String
  /// `true` within quiet hours: the event is recorded, and nobody is to be woken by it.
  package var quiet: Bool
  /// The beginnings of the same alert before this one that were not told, because at most one is told each minute.
  package var suppressed: Int
  /// The pictures of the alert that the event belongs to, at the time at which somebody asks; nil if there are none, and in
  /// the history itself.
  package var pictures: [AlertPictures.Moment]?

  /// The longest text in Unicode scalars. With it an event fits into a line of the history's file, whatever a driver or a
  /// viewer has put into the words.
  static let textLimit = 500

  /// Creates an event.
  package init(
    id: UInt64, kind: AlertKind, camera: String?, state: State, of: UInt64? = nil, time: String, since: String,
    confidence: Double = 1, text: String, quiet: Bool = false, suppressed: Int = 0
  ) {
    (self.id, self.kind, self.camera, self.state, self.of) = (id, kind, camera, state, of)
    (self.time, self.since, self.confidence, self.text) = (
      time, since, confidence, String(String.UnicodeScalarView(text.unicodeScalars.prefix(Self.textLimit)))
    )
    (self.quiet, self.suppressed) = (quiet, suppressed)
  }

  /// The number of the event with which the alert began.
  package var beginning: UInt64 { of ?? id }

  /// The identity of the alert that the event belongs to.
  package var subject: AlertSubject { AlertSubject(kind: kind, camera: camera) }
}

/// The identity of an alert: there is at most one at a time for each kind and camera.
package struct AlertSubject: Hashable, Sendable {
  /// The kind.
  package var kind: AlertKind
  /// The camera's name; nil for an alert of the whole program.
  package var camera: String?

  /// Creates an identity.
  package init(kind: AlertKind, camera: String?) { (self.kind, self.camera) = (kind, camera) }
}
