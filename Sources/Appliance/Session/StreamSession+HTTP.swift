import Serving
import Streaming

extension StreamSession {
  /// Serves the pictures and figures over plain HTTP, and tells where.
  func serveHTTP(_ configuration: HTTPServer.Configuration) throws -> HTTPServer {
    let server = try HTTPServer(configuration, target: control)
    // With several cameras, a path without a name means none of them.
    let paths = slots.count > 1 ? slots.map { "/cameras/\($0.name)" } : [""]
    var hosts: [String] = []
    for listener in server.listeners {
      // Both loopback addresses have one name.
      for host in listener.hosts where !hosts.contains("\(host):\(listener.port)") {
        hosts.append("\(host):\(listener.port)")
      }
    }
    for path in paths {
      for host in hosts { terminal.line("http       http://\(host)\(path)/stream.mjpg") }
    }
    for listener in server.listeners where listener.isAbsent {
      terminal.warning("this host has no address \(listener.address) now; nightjar listens there as soon as it has")
    }
    if let listener = server.listeners.first(where: \.isLoopback) {
      terminal.line("  browser: http://localhost:\(listener.port)/ on this host")
    }
    if let url = server.listeners.first.map({ "http://\($0.hostForOthers):\($0.port)" }) {
      let login = configuration.listeners.contains { !$0.isLoopback } ? "--digest -u NAME " : ""
      terminal.line("  curl: curl \(login)-o snapshot.jpg \(url)\(paths[0])/snapshot.jpg")
      introduceListening(to: slots, at: url, isNewServer: true)
    }
    return server
  }

  /// Tells where a browser plays the sound of each camera that has one. A camera that does not stream yet is told of
  /// once it does: until then nobody knows whether it has a microphone.
  ///
  /// - Parameters:
  ///   - url: the server's URL, without a path.
  ///   - isNewServer: `true` at the start of that server; see ``tellURL(_:of:isNewServer:)``.
  func introduceListening(to slots: [CameraSlot], at url: String, isNewServer: Bool) {
    for slot in slots where slot.stream?.pipeline.sound != nil {
      let path = (self.slots.count > 1 ? "/cameras/\(slot.name)" : "") + "/listen.mp3"
      tellURL("  listen: \(url)\(path)", of: slot, isNewServer: isNewServer)
    }
  }
}
