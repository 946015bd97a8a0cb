import Control
import Credentials
import Listening
import Media

extension StreamSession {
  /// Serves what there is to see over plain HTTP, and says where.
  func serveHTTP(_ configuration: ReadingServer.Configuration) throws -> ReadingServer {
    let server = try ReadingServer(configuration, target: control)
    // Of several cameras none is meant without its name.
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
      terminal.warning("this machine has no address \(listener.address) now: it listens there once it has")
    }
    if let url = server.listeners.first.map({ "http://\($0.hostForOthers):\($0.port)" }) {
      let login = configuration.listeners.contains { !$0.isLoopback } ? "--digest -u NAME " : ""
      terminal.line("  curl: curl \(login)-o snapshot.jpg \(url)\(paths[0])/snapshot.jpg")
    }
    return server
  }

  /// Has that server do what it is to do now. Nobody can ask for a reload by it, so that another one takes its place at
  /// once.
  func serveHTTPAnew(_ old: ReadingServer.Configuration?) {
    guard let new = servingHTTP else {
      http?.stop()
      if http != nil { reloading?.answer.server.append("HTTP ended") }
      http = nil
      return
    }
    do {
      if let http, let old, old.listeners == new.listeners {
        guard old.users?.users != new.users?.users else { return }
        http.set(users: new.users)
        reloading?.answer.server.append("users of HTTP changed")
        return
      }
      // What works is not ended for what cannot.
      for listener in new.listeners where old?.listeners.contains(where: { $0.port == listener.port }) != true {
        try listener.check(service: "HTTP")
      }
      http?.stop()
      http = nil
      http = try serveHTTP(new)
      reloading?.answer.server.append("HTTP restarted")
    } catch {
      complain("HTTP is not changed: \(error)")
      guard var old else { return }
      // Who may look holds in any case.
      old.users = new.users
      http?.set(users: new.users)
      servingHTTP = old
      if http == nil { serveAgain() }
    }
  }
}
