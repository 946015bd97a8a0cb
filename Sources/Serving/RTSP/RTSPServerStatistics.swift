package import Platform
package import Streaming

/// The statistics of an RTSP server.
package struct RTSPServerStatistics: Sendable {
  /// Current connections.
  package var connections = 0
  /// Current sessions.
  package var sessions = 0
  /// Current sessions that play.
  package var playing = 0
  /// Current sessions that play, by the camera's name; 0 for a camera without viewers.
  package var viewers: [String: Int] = [:]
  /// Requests answered.
  package var requests = 0
  /// Refused requests, and input that was no request.
  package var refused = 0
  /// Failed logins.
  package var failedLogins = 0
  /// Connections turned away because there were too many.
  package var turnedAway = 0
}

/// A viewer by RTSP.
package struct RTSPServerViewer: Sendable {
  /// The viewer's name, for the user: `rtsp udp 192.168.1.20:50000, anna`.
  package var name: String
  /// The camera's name.
  package var camera: String
  /// The user that has logged in; nil if no login is needed.
  package var user: String?
  /// The time of joining, on the monotonic clock.
  package var since: Instant
  /// The delivery statistics of all tracks that are played; nil for a member of a group.
  package var figures: DestinationStatistics?
}

extension RTSPService {
  /// Returns the current viewers.
  func viewers() -> [RTSPServerViewer] {
    playing.sorted { $0.value.number < $1.value.number }.map { session, viewer in
      RTSPServerViewer(
        name: viewer.name, camera: viewer.presentation.name, user: sessions[session]?.user.map { "\($0.name)" },
        since: viewer.since, figures: viewer.figures)
    }
  }
}
