import Serving
import Streaming

extension StreamSession {
  /// Serves the streams by RTSP, and tells how to watch them.
  func serve(_ configuration: RTSPServerConfiguration) throws -> RTSPServer {
    let server = try RTSPServer(configuration, presentations: presentations)
    for slot in slots {
      let players = RTSPPlayerCommands(configuration: configuration, listeners: server.listeners, name: slot.name)
      tell(players, of: slot, isNewServer: true)
      // The commands for the first camera serve as the example.
      guard slot === slots.first else { continue }
      for (player, command) in players.commands { terminal.line("  \(player): \(command)") }
    }
    for listener in server.listeners where listener.isAbsent {
      terminal.warning("this host has no address \(listener.address) now; nightjar listens there as soon as it has")
    }
    if configuration.users == nil {
      terminal.line(
        "  only this host may watch; let others in: \(ServiceAccount.addingUser)")
    }
    for presentation in presentations {
      guard let group = presentation.group else { continue }
      terminal.line(
        "multicast  \(group.address) port \(group.port): everybody on the network can watch while any viewer does")
    }
    return server
  }

  /// Tells the URLs of a camera that begins to stream while the servers run.
  func introduceURLs(of slot: CameraSlot) {
    if let serving, let rtsp {
      tell(
        RTSPPlayerCommands(configuration: serving, listeners: rtsp.listeners, name: slot.name), of: slot,
        isNewServer: false)
    }
    for (scheme, server) in [("https", api), ("http", http)] {
      guard let listener = server?.listeners.first else { continue }
      introduceListening(
        to: [slot], at: "\(scheme)://\(listener.hostForOthers):\(listener.port)", isNewServer: false)
    }
  }

  /// Tells the URLs of a camera, and that of its H.264.
  private func tell(_ players: RTSPPlayerCommands, of slot: CameraSlot, isNewServer: Bool) {
    let urls = players.urls
    for url in urls { tellURL("rtsp       \(url)", of: slot, isNewServer: isNewServer) }
    guard let url = urls.last, slot.stream?.pipeline.h264ParameterSets != nil else { return }
    tellURL("  for players without HEVC: \(url)/\(Presentation.h264Name)", of: slot, isNewServer: isNewServer)
  }

  /// Tells a line with a URL of a camera: at the start of each server, and once more only if it is another one.
  func tellURL(_ line: String, of slot: CameraSlot, isNewServer: Bool) {
    guard slot.toldURLs.insert(line).inserted || isNewServer else { return }
    terminal.line(line)
  }
}
