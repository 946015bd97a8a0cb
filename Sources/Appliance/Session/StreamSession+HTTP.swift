import Serving
import Streaming

extension StreamSession {
  /// Serves the pictures and figures over plain HTTP, and tells where.
  func serveHTTP(_ configuration: ReadingServer.Configuration) throws -> ReadingServer {
    let server = try ReadingServer(configuration, target: control)
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
      introduceListening(url)
    }
    return server
  }

  /// Tells where a browser plays the sound of each camera that has or may get one.
  ///
  /// - Parameter url: the server's URL, without a path.
  func introduceListening(_ url: String) {
    for slot in slots {
      guard let (_, entry) = camera(slot.number), entry.configuration.sound.choice != .none else { continue }
      if let stream = slot.stream, stream.pipeline.sound == nil { continue }
      terminal.line("  listen: \(url)\(slots.count > 1 ? "/cameras/\(slot.name)" : "")/listen.mp3")
    }
  }

  /// Applies the new configuration to the HTTP server. Clients cannot request a reload by that server, so another
  /// server replaces it at once.
  func serveHTTPAnew(_ old: ReadingServer.Configuration?) {
    guard let new = servingHTTP else {
      http?.stop()
      if http != nil { handle(.serverChanged("HTTP ended")) }
      http = nil
      return
    }
    do {
      if let http, let old, old.listeners == new.listeners {
        guard old.users?.users != new.users?.users else { return }
        http.set(users: new.users)
        handle(.serverChanged("users of HTTP changed"))
        return
      }
      // A server that works must not end for one that cannot start.
      for listener in new.listeners where old?.listeners.contains(where: { $0.port == listener.port }) != true {
        try listener.check(service: "HTTP")
      }
      http?.stop()
      http = nil
      http = try serveHTTP(new)
      handle(.serverChanged("HTTP restarted"))
    } catch {
      complain("HTTP is not changed: \(error)")
      guard var old else { return }
      // The new users apply in any case.
      old.users = new.users
      http?.set(users: new.users)
      servingHTTP = old
      if http == nil { serveAgain() }
    }
  }
}
