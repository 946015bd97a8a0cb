import NIOCore
import Platform
import RTSP
import Streaming

/// A session that was set up, with its camera and its user.
struct ServedSession {
  let presentation: ServedPresentation
  /// The user whose login set the session up or started it; nil if no login is needed.
  var user: UsersFile.User?
  /// `true` if the session has played before: it does not get its former packets again.
  var hasPlayed = false
  /// The places in the tracks that have played, by track.
  var places: [Int: GuestPlace] = [:]
}

/// A session that plays.
struct Playing {
  /// The number of this play; it separates packets from before a pause from later ones.
  let number: UInt64
  let presentation: ServedPresentation
  /// The connection that carries interleaved packets: the one of SETUP, whichever connection sent PLAY.
  let connection: UInt64
  /// The viewer's name, for the user.
  let name: String
  /// The camera's name, if there are several.
  let camera: String?
  let since = Instant.now()
  /// The tracks that the session plays.
  var streams: [PlayingStream] = []
  /// The answer to PLAY, until it is sent: it says where the streams begin.
  var pending: PendingPlay?
  var lastHeard = Instant.zero
  /// The time since which the client is gone: its connections have ended, and its ports refuse all packets.
  var goneSince: Instant?
  /// Packets that came before the answer was sent, with their tracks: they follow it.
  var early: [(track: Int, bytes: InterleavedBytes)] = []

  /// The stream of a track; nil if the session does not play it.
  subscript(track: Int) -> PlayingStream? { streams.first { $0.track == track } }

  /// The delivery statistics of all tracks; nil for a member of the group.
  var figures: DestinationStatistics? {
    DestinationStatistics.viewers(
      of: streams.compactMap(\.viewer).compactMap { presentation.pipeline.statistics(of: $0) }
    ).first
  }

  /// The media of the tracks.
  var media: StreamMedia {
    streams.reduce(into: []) { $0.formUnion(presentation.pipeline.track(presentation.tracks[$1.track]).media) }
  }
}

/// One track of a session that plays.
struct PlayingStream {
  let track: Int
  let transport: SelectedTransport
  /// Nil for a member of the group.
  var viewer: ViewerID?
  var interleaved: InterleavedTransport?
  /// The first packet; nil before it, and for a member of the group.
  var start: StreamStart?
  /// `true` once there was a first packet, or if none is waited for.
  var hasStarted = false
}

/// The answer to a PLAY that is not sent yet.
struct PendingPlay {
  var response: Response
  /// The URLs of the streams, by track.
  let urls: [Int: String]
  let connection: RTSPConnection
  /// `true` once a stream has begun, and the others get no more than ``RTSPService/tracksPatience``.
  var isDue = false
}

extension SelectedTransport {
  /// The client's UDP port for RTP; nil for another transport.
  var port: UInt16? {
    if case .udp(let ports) = delivery { ports.rtp } else { nil }
  }

  /// Returns a name such as `rtsp udp 192.168.1.20:50000, anna`.
  func viewerName(of connection: RTSPConnection, isProtected: Bool) -> String {
    let kind = isProtected ? "rtsp srtp" : "rtsp"
    let user = connection.user.map { ", \($0.name)" } ?? ""
    return switch delivery {
    case .udp(let ports): "\(kind) udp \(connection.client):\(ports.rtp)\(user)"
    case .interleaved: "\(kind) tcp \(connection.client):\(connection.channel.remoteAddress?.port ?? 0)\(user)"
    case .multicast: "\(kind) multicast \(connection.client)\(user)"
    }
  }

  /// Returns the viewer's transport and address, for programs.
  func viewerPeer(of connection: RTSPConnection, isProtected: Bool) -> ViewerPeer {
    let user = connection.user?.name.description
    return switch delivery {
    case .udp(let ports):
      ViewerPeer(.udp, address: connection.client, port: Int(ports.rtp), user: user, isEncrypted: isProtected)
    case .interleaved:
      ViewerPeer(
        .tcp, address: connection.client, port: connection.channel.remoteAddress?.port, user: user,
        isEncrypted: isProtected || connection.table.scheme == .rtsps)
    case .multicast: ViewerPeer(.multicast, address: connection.client, user: user, isEncrypted: isProtected)
    }
  }
}
