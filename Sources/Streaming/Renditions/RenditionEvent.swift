package import Platform

/// A kind of rendition beside the stream's own pictures.
package enum RenditionKind: Sendable {
  /// Pictures of half the width and height, for weak networks.
  case small
  /// Pictures in H.264, for viewers that cannot decode the stream's own codec.
  case h264

  /// The pictures in words.
  var title: String {
    switch self {
    case .small: "small pictures for weak networks"
    case .h264: "H.264 beside HEVC"
    }
  }

  /// The name of the encoder's thread.
  var threadName: String {
    switch self {
    case .small: "nj-small"
    case .h264: "nj-h264"
    }
  }
}

/// A change of a rendition's encoder, described in one line for the terminal.
package enum RenditionEvent: Sendable, CustomStringConvertible {
  /// The encoder could not be made, or failed for good. If a viewer needs it after `retry`, nightjar makes another one.
  case failed(RenditionKind, reason: String, retry: Duration)
  /// The encoder has made its first picture after a failure.
  case recovered(RenditionKind, encoder: String)

  /// One line for the person at the terminal.
  package var description: String {
    switch self {
    case .failed(let kind, let reason, let retry):
      "no \(kind.title): \(reason); nightjar tries again in \(retry.nanoseconds / 1_000_000_000) s"
    case .recovered(let kind, let encoder): "\(encoder) encodes \(kind.title) again"
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
