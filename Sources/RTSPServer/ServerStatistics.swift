import Credentials
public import Media
public import Streaming

/// What an RTSP server has done.
public struct ServerStatistics: Sendable {
  /// Connections of now.
  public var connections = 0
  /// Sessions of now.
  public var sessions = 0
  /// Those of them that play.
  public var playing = 0
  /// Those of them that play, by the camera's name; 0 for one that nobody watches.
  public var viewers: [String: Int] = [:]
  /// Requests answered.
  public var requests = 0
  /// Requests that were refused, and bytes that were none.
  public var refused = 0
  /// Failed logins.
  public var failedLogins = 0
  /// Connections that were turned away for their number.
  public var turnedAway = 0
}

/// One who watches by RTSP.
public struct ServerViewer: Sendable {
  /// Who it is, for a person: `rtsp udp 192.168.1.20:50000, anna`.
  public var name: String
  /// The camera's name.
  public var camera: String
  /// Who has logged in; nil where nobody is asked.
  public var user: String?
  /// Since when, on the monotonic clock.
  public var since: MediaTime
  /// What it got; nil for one of a group.
  public var figures: DestinationStatistics?
}

extension Service {
  /// Who watches now.
  func viewers() -> [ServerViewer] {
    playing.sorted { $0.value.number < $1.value.number }.map { session, viewer in
      ServerViewer(
        name: viewer.name, camera: viewer.presentation.name, user: sessions[session]?.user.map { "\($0.name)" },
        since: viewer.since, figures: viewer.viewer.flatMap { viewer.presentation.pipeline.statistics(of: $0) })
    }
  }
}
