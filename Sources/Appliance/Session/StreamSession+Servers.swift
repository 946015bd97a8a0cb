import Serving

/// The servers' changes after a reload.
extension StreamSession {
  /// Applies the new configuration to the RTSP server. If only the users have changed, the server stays; otherwise
  /// another server replaces it.
  func serveAnew(_ old: RTSPServerConfiguration?) {
    guard let new = serving else {
      rtsp?.stop()
      if rtsp != nil { handle(.serverChanged("RTSP ended")) }
      rtsp = nil
      return
    }
    do {
      if let rtsp, let old, old.isSame(as: new) {
        guard old.users?.users != new.users?.users else { return }
        try rtsp.set(users: new.users)
        handle(.serverChanged("users changed"))
        return
      }
      // A server that works must not end for one that cannot start.
      for listener in new.listeners where old?.listeners.contains(where: { $0.overlaps(listener) }) != true {
        try listener.check(service: "RTSP")
      }
      rtsp?.stop()
      rtsp = nil
      rtsp = try serve(new)
      handle(.serverChanged("RTSP restarted"))
    } catch {
      complain("RTSP is not changed: \(error)")
      guard var old else { return }
      // The new users apply in any case.
      old.users = new.users
      old.servesThisMachineAlone = new.servesThisMachineAlone
      serving = old
      do { try rtsp?.set(users: new.users) } catch { complain("\(error)") }
      if rtsp == nil { serveAgain() }
    }
  }

  /// Applies the new configuration to the network control API. Another server replaces the present one only once the
  /// clients that requested the reload by the present one have their answer.
  func serveAPIAnew(_ old: NetworkControlServer.Configuration?) {
    guard let new = servingAPI else {
      guard api != nil else { return }
      handle(.serverChanged("HTTPS ended"))
      isAPIStale = true
      return
    }
    if let api, let old, old.isSame(as: new) {
      let changed = [
        old.users?.users != new.users?.users ? "users" : nil, old.tokens != new.tokens ? "tokens" : nil,
      ].compactMap { $0 }
      guard !changed.isEmpty else { return }
      api.set(users: new.users, tokens: new.tokens)
      handle(.serverChanged("\(changed.joined(separator: " and ")) of HTTPS changed"))
      return
    }
    // The new users and tokens apply at once, and in any case.
    api?.set(users: new.users, tokens: new.tokens)
    do {
      for listener in new.listeners where old?.listeners.contains(where: { $0.overlaps(listener) }) != true {
        try listener.check(service: "the control API")
      }
      handle(.serverChanged("HTTPS restarts"))
      isAPIStale = true
    } catch {
      complain("HTTPS is not changed: \(error)")
      servingAPI = old
      servingAPI?.users = new.users
      servingAPI?.tokens = new.tokens
    }
  }

  /// Replaces the API server by another one.
  func exchangeAPI() {
    exchangeOfAPI = nil
    isAPIStale = false
    api?.stop()
    // The last events of the old server are told all the same.
    tellServerEvents()
    api = nil
    serveAgain()
    publish()
    // Reloads may have been requested meanwhile.
    wake.fire()
  }

  /// Tries again to start the servers that could not listen; called every few seconds.
  func serveAgain() {
    if rtsp == nil, let serving {
      trying("RTSP") { rtsp = try serve(serving) }
    }
    if api == nil, let servingAPI {
      trying("HTTPS") { api = try serveAPI(servingAPI) }
    }
    servePeers()
    if http == nil, let servingHTTP {
      trying("HTTP") { http = try serveHTTP(servingHTTP) }
    }
  }

  private func trying(_ server: String, _ body: () throws -> Void) {
    do {
      try body()
      servingComplaints[server] = nil
      publish()
    } catch {
      complainOnce("\(error)", about: server)
    }
  }

  /// Tells `text` if the message is new. A reload's answer always contains it.
  func complainOnce(_ text: String, about server: String) {
    if table.reload != nil || servingComplaints[server] != text { complain(text) }
    servingComplaints[server] = text
  }
}

extension TCPListener {
  /// Returns `true` if both listeners cannot exist together.
  fileprivate func overlaps(_ other: TCPListener) -> Bool { port == other.port }
}

extension NetworkControlServer.Configuration {
  /// Returns `true` if one server serves both configurations, apart from users and tokens.
  fileprivate func isSame(as other: Self) -> Bool {
    listeners == other.listeners && identity.isSame(as: other.identity)
  }
}

extension TLSIdentity {
  /// Returns `true` if clients receive the same certificates, including those of the chain.
  fileprivate func isSame(as other: TLSIdentity) -> Bool {
    certificates == other.certificates && privateKey == other.privateKey
  }
}

extension RTSPServerConfiguration {
  /// Returns `true` if one server serves both configurations, apart from the users.
  fileprivate func isSame(as other: RTSPServerConfiguration) -> Bool {
    listeners == other.listeners && requiresEncryption == other.requiresEncryption && suite == other.suite
      && sessions == other.sessions
      && (identity == nil ? other.identity == nil : other.identity.map { identity?.isSame(as: $0) == true } == true)
  }
}
