import Control
import Credentials
import Listening
import Media
import RTSPServer

extension StreamSession {
  /// Serves the control API over the network, and says how to use it.
  func serveAPI(_ configuration: NetworkControlServer.Configuration) throws -> NetworkControlServer {
    let server = try NetworkControlServer(configuration, target: control)
    var urls: [String] = []
    for listener in server.listeners {
      for host in listener.hosts {
        let url = "https://\(host):\(listener.port)/v1/status"
        if !urls.contains(url) { urls.append(url) }
      }
      if listener.isAbsent {
        terminal.warning("this machine has no address \(listener.address) now: it listens there once it has")
      }
    }
    for url in urls { terminal.line("https      \(url)") }
    if let url = server.listeners.first.map({ "https://\($0.hostForOthers):\($0.port)/v1/status" }) {
      // curl checks no certificate that nobody vouches for: compare the fingerprint where that matters.
      let login =
        configuration.users != nil ? "-u NAME " : configuration.tokens != nil ? "-H 'Authorization: Bearer TOKEN' " : ""
      terminal.line("  curl: curl -k \(login)\(url)")
    }
    if configuration.users == nil, configuration.tokens?.names.isEmpty != false {
      terminal.line(
        "  only this machine may ask, and change nothing; let others in with: nightjar token add NAME, or nightjar user "
          + "add NAME; then: nightjar ctl reload")
    }
    return server
  }
}
