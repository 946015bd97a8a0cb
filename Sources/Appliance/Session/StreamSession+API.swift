import Serving

extension StreamSession {
  /// Serves the control API over the network, and tells how to use it.
  func serveAPI(_ configuration: HTTPServer.Configuration) throws -> HTTPServer {
    let server = try HTTPServer(configuration, target: control)
    var urls: [String] = []
    for listener in server.listeners {
      for host in listener.hosts {
        let url = "https://\(host):\(listener.port)/v1/status"
        if !urls.contains(url) { urls.append(url) }
      }
      if listener.isAbsent {
        terminal.warning("this host has no address \(listener.address) now; nightjar listens there as soon as it has")
      }
    }
    for url in urls { terminal.line("https      \(url)") }
    if let url = server.listeners.first.map({ "https://\($0.hostForOthers):\($0.port)" }) {
      terminal.line("  browser: \(url)/")
      // curl rejects a self-signed certificate: compare the fingerprint if that matters.
      let login =
        configuration.users != nil ? "-u NAME " : configuration.tokens != nil ? "-H 'Authorization: Bearer TOKEN' " : ""
      terminal.line("  curl: curl -k \(login)\(url)/v1/status")
      introduceListening(to: slots, at: url, isNewServer: true)
    }
    if configuration.users == nil, configuration.tokens?.names.isEmpty != false {
      terminal.line(
        "  only this host may read, and change nothing; let others in: nightjar token add NAME, or nightjar user "
          + "add NAME")
    }
    return server
  }
}
