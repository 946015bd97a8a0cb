import Credentials
import Media
import NIOCore
import RTSP
import Streaming

/// A session that was set up: of which camera, and whose it is.
struct ServedSession {
  let presentation: ServedPresentation
  /// Who set it up, or has it play, as that was proved; nil where nobody is asked.
  var user: UsersFile.User?
  /// Whether it has played before: what it had then does not come again.
  var hasPlayed = false
}

/// A session that plays.
struct Playing {
  /// Tells what is still on its way from before a pause from what comes after it.
  let number: UInt64
  let presentation: ServedPresentation
  /// Where interleaved packets go: the connection of SETUP, whichever PLAY came on.
  let connection: UInt64
  let transport: SelectedTransport
  /// Who it is, for a person.
  let name: String
  /// The camera's name, where there are several.
  let camera: String?
  let since = MediaTime.now()
  /// Nil for one that shares the group.
  var viewer: ViewerID?
  var interleaved: InterleavedTransport?
  /// The answer to PLAY, until it is sent: it says where the stream begins.
  var pending: PendingPlay?
  var lastHeard = MediaTime.zero
  /// Packets that came before the answer was sent: they go behind it.
  var early: [InterleavedBytes] = []
}

/// The answer to a PLAY that is not sent yet.
struct PendingPlay {
  var response: Response
  let url: String
  let connection: Connection
}

extension SelectedTransport {
  /// The client's UDP port of RTP; nil for another way.
  var port: UInt16? {
    if case .udp(let ports) = delivery { ports.rtp } else { nil }
  }

  /// `rtsp udp 192.168.1.20:50000, anna`.
  func viewerName(of connection: Connection, isProtected: Bool) -> String {
    let kind = isProtected ? "rtsp srtp" : "rtsp"
    let user = connection.user.map { ", \($0.name)" } ?? ""
    return switch delivery {
    case .udp(let ports): "\(kind) udp \(connection.client):\(ports.rtp)\(user)"
    case .interleaved: "\(kind) tcp \(connection.client):\(connection.channel.remoteAddress?.port ?? 0)\(user)"
    case .multicast: "\(kind) multicast \(connection.client)\(user)"
    }
  }

  /// How the viewer is reached, for a program.
  func viewerPeer(of connection: Connection, isProtected: Bool) -> ViewerPeer {
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
