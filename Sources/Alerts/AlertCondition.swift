package import Platform

/// A condition that somebody ought to know of, as it is now.
package struct AlertCondition: Hashable, Sendable {
  /// The identity of the alert.
  package var subject: AlertSubject
  /// The time since which the condition has existed.
  package var since: Instant
  /// The confidence of the detector, 0…1.
  package var confidence: Double
  /// One line in words, for people.
  package var text: String

  /// Creates a condition.
  package init(
    _ kind: AlertKind, camera: String?, since: Instant, confidence: Double = 1, text: String
  ) {
    subject = AlertSubject(kind: kind, camera: camera)
    (self.since, self.confidence, self.text) = (since, confidence, text)
  }
}
