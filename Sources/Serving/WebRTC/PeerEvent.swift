package import Platform
package import Streaming
package import WebRTC

/// Something that happened to a browser's session, one line for the log.
package enum PeerEvent: Sendable, CustomStringConvertible {
  /// A browser gets the stream.
  case began(ViewerPeer, camera: String)
  /// A browser that got the stream does so no longer.
  case ended(ViewerPeer, camera: String, PeerEnd, after: Duration)
  /// A browser never got the stream.
  case failed(ViewerPeer, camera: String, PeerEnd)

  /// The event's line.
  package var description: String {
    switch self {
    case .began(let peer, let camera): "viewer webrtc \(peer.place) is watching \(camera)"
    case .ended(let peer, let camera, let end, let time):
      "viewer webrtc \(peer.place) left \(camera) after \(time.nanoseconds / 1_000_000_000) s: \(end)"
    case .failed(let peer, let camera, let end): "viewer webrtc \(peer.place) never got \(camera): \(end)"
    }
  }

  /// `true` if the event needs attention.
  package var isWarning: Bool { if case .failed = self { true } else { false } }
}
