package import Platform

/// A change of the encoder of small pictures, or of H.264 beside another codec, described in one line for the terminal.
package enum RenditionEvent: Sendable, CustomStringConvertible {
  /// The encoder could not be made, or failed for good; the next attempt is after `retry`, if a viewer needs it then.
  case failed(reason: String, retry: Duration)
  /// The encoder works after a failure.
  case recovered(encoder: String)
  /// The encoder of H.264 could not be made, or failed for good; the next attempt is after `retry`, if a viewer needs it then.
  case h264Failed(reason: String, retry: Duration)
  /// The encoder of H.264 was made after a failure.
  case h264Recovered(encoder: String)

  /// One line for the person at the terminal.
  package var description: String {
    switch self {
    case .failed(let reason, let retry):
      "no small pictures for weak networks: \(reason); nightjar tries again in \(retry.nanoseconds / 1_000_000_000) s"
    case .recovered(let encoder): "small pictures for weak networks come again, by \(encoder)"
    case .h264Failed(let reason, let retry):
      "no H.264 beside HEVC: \(reason); nightjar tries again in \(retry.nanoseconds / 1_000_000_000) s"
    case .h264Recovered(let encoder): "H.264 beside HEVC comes again, by \(encoder)"
    }
  }

  /// `true` if something has gone wrong.
  package var isWarning: Bool {
    switch self {
    case .failed, .h264Failed: true
    case .recovered, .h264Recovered: false
    }
  }
}
