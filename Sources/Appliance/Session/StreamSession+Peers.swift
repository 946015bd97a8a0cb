import Host
import Platform
import Serving

/// The server of browsers, which goes with the page.
extension StreamSession {
  /// Serves browsers as the configuration says, ends them, or does nothing if nothing has changed. A port that is in use
  /// is told, and tried again.
  func servePeers() {
    let wanted = configuration.webrtc.configuration(servingAPI, servingHTTP)
    guard peers?.configuration != wanted else { return }
    let former = peers
    former?.close()
    tellPeerEvents()
    peers = nil
    defer { publish() }
    guard let wanted else { return handle(.serverChanged("WebRTC ended")) }
    do {
      peers = try PeerServer(wanted, after: former)
      servingComplaints["WebRTC"] = nil
      if former != nil { handle(.serverChanged("WebRTC restarted")) }
    } catch {
      complainOnce(
        "browsers get pictures one by one, without sound: UDP port \(wanted.port): \(error)", about: "WebRTC")
    }
  }

  func tellPeerEvents() {
    for event in peers?.events.take() ?? [] {
      terminal.line(event.description, event.isWarning ? .warning : .info, event: "viewer")
    }
  }
}
