import Platform
import Serving

/// The effects of the server table, carried out.
extension StreamSession {
  var serving: RTSPServerConfiguration? { servers.configurations.rtsp }
  var servingAPI: HTTPServer.Configuration? { servers.configurations.https }
  var servingHTTP: HTTPServer.Configuration? { servers.configurations.http }

  /// Passes an event to the table of servers, and carries out its effects and those of the events that come of them.
  func handleServers(_ event: ServerTable.Event) {
    var waiting = servers.handle(event, at: .now())
    while !waiting.isEmpty {
      if let next = perform(waiting.removeFirst()) { waiting = servers.handle(next, at: .now()) + waiting }
    }
  }

  /// Starts a server before the program goes on.
  ///
  /// - Throws: the server's errors, which end the program.
  func begin(_ server: ServerTable.Server) throws {
    guard servers.isWanted(server) else { return }
    try start(server)
    handleServers(.started(server, failure: nil))
  }

  /// Starts a server, and returns the outcome.
  func attempt(_ server: ServerTable.Server) -> ServerTable.Event {
    .started(server, failure: failure { try start(server) })
  }

  /// Lets the server of browsers follow the servers of the page.
  func servePeers() { handleServers(.configuredPeers(configuration.webrtc.configuration(servingAPI, servingHTTP))) }

  /// Carries out an effect. Returns the event that comes of it at once.
  private func perform(_ effect: ServerTable.Effect) -> ServerTable.Event? {
    switch effect {
    case .check(let server, let listeners):
      return .checked(server, failure: failure { for one in listeners { try one.check(service: server.service) } })
    case .start(let server): return attempt(server)
    case .stop(let server): stop(server)
    case .setAccess(let server): setAccess(server)
    case .tell(let text): handle(.serverChanged(text))
    case .complain(let text, let isNew): if isNew || table.reload != nil { complain(text) }
    case .publish: publish()
    case .takeReloads: wake.fire()
    }
    return nil
  }

  private func failure(_ body: () throws -> Void) -> String? {
    do {
      try body()
      return nil
    } catch {
      return "\(error)"
    }
  }

  /// Starts a server with its configuration; a present one ends before.
  private func start(_ server: ServerTable.Server) throws {
    let former = peers
    stop(server)
    let configurations = servers.configurations
    switch server {
    case .rtsp: rtsp = try configurations.rtsp.map(serve)
    case .https: api = try configurations.https.map(serveAPI)
    case .http: http = try configurations.http.map(serveHTTP)
    case .webRTC:
      guard let wanted = configurations.webRTC else { return }
      do {
        let made = try PeerServer(wanted, after: former)
        peers = made
        if let failure = made.listenFailure {
          complain(
            "browsers whose network lets no UDP through get pictures one by one: TCP port \(made.port): \(failure). "
              + "Choose another port: \(ApplianceSetting.webrtcPort)")
        }
      } catch {
        throw ApplianceFailure(
          kind: .system,
          description: "browsers get pictures one by one, without sound: UDP port \(wanted.port): \(error)")
      }
    }
  }

  /// Ends a server that another one may replace. Its last events are told all the same.
  private func stop(_ server: ServerTable.Server) {
    switch server {
    case .rtsp: rtsp?.stop()
    case .https: api?.stop()
    case .http: http?.stop()
    case .webRTC: peers?.close()
    }
    tellServerEvents()
    switch server {
    case .rtsp: rtsp = nil
    case .https: api = nil
    case .http: http = nil
    case .webRTC: peers = nil
    }
  }

  /// Ends all servers with the program. After the summary, only browsers' ends are told.
  func stopServers() {
    rtsp?.stop()
    http?.stop()
    peers?.close()
    tellPeerEvents()
    api?.stop()
  }

  private func setAccess(_ server: ServerTable.Server) {
    switch server {
    case .rtsp: if let reason = failure({ try rtsp?.set(users: serving?.users) }) { complain(reason) }
    case .https: api?.set(users: servingAPI?.users, tokens: servingAPI?.tokens)
    case .http: http?.set(users: servingHTTP?.users, tokens: nil)
    case .webRTC: break
    }
  }
}

extension ServerTable.Server {
  /// The service in messages about its addresses.
  fileprivate var service: String { self == .https ? "the control API" : name }
}
