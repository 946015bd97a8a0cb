package import Platform

/// A change of the encoder of small pictures, described in one line for the terminal.
package enum RenditionEvent: Sendable, CustomStringConvertible {
  /// The encoder could not be made, or failed for good; the next attempt is after `retry`, if a viewer needs it then.
  case failed(reason: String, retry: Duration)
  /// The encoder works after a failure.
  case recovered(encoder: String)

  /// One line for the person at the terminal.
  package var description: String {
    switch self {
    case .failed(let reason, let retry):
      "no small pictures for weak networks: \(reason); nightjar tries again in \(retry.nanoseconds / 1_000_000_000) s"
    case .recovered(let encoder): "small pictures for weak networks come again, by \(encoder)"
    }
  }

  /// `true` if something has gone wrong.
  package var isWarning: Bool {
    switch self {
    case .failed: true
    case .recovered: false
    }
  }
}
