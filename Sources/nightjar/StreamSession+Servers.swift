import Control
import Credentials
import Listening
import Media
import RTSPServer

/// What the box's servers do after a reload.
extension StreamSession {
  /// Has the RTSP server do what it is to do now: by itself where users have changed, else by another one.
  func serveAnew(_ old: ServerConfiguration?) {
    guard let new = serving else {
      rtsp?.stop()
      if rtsp != nil { reloading?.answer.server.append("RTSP ended") }
      rtsp = nil
      return
    }
    do {
      if let rtsp, let old, old.isSame(as: new) {
        guard old.users?.users != new.users?.users else { return }
        try rtsp.set(users: new.users)
        reloading?.answer.server.append("users changed")
        return
      }
      // What works is not ended for what cannot.
      for listener in new.listeners where old?.listeners.contains(where: { $0.overlaps(listener) }) != true {
        try listener.check(service: "RTSP")
      }
      rtsp?.stop()
      rtsp = nil
      rtsp = try serve(new)
      reloading?.answer.server.append("RTSP restarted")
    } catch {
      complain("RTSP is not changed: \(error)")
      guard var old else { return }
      // Who may watch holds in any case.
      old.users = new.users
      old.servesThisMachineAlone = new.servesThisMachineAlone
      serving = old
      do { try rtsp?.set(users: new.users) } catch { complain("\(error)") }
      if rtsp == nil { serveAgain() }
    }
  }

  /// Has the control API over the network do what it is to do now. Another server takes this one's place only once those
  /// who have asked for the reload by this one have their answer.
  func serveAPIAnew(_ old: NetworkControlServer.Configuration?) {
    guard let new = servingAPI else {
      guard api != nil else { return }
      reloading?.answer.server.append("HTTPS ended")
      isAPIStale = true
      return
    }
    if let api, let old, old.isSame(as: new) {
      guard old.users?.users != new.users?.users || old.tokens != new.tokens else { return }
      api.set(users: new.users, tokens: new.tokens)
      reloading?.answer.server.append("users of HTTPS changed")
      return
    }
    // Who may ask holds at once, and in any case.
    api?.set(users: new.users, tokens: new.tokens)
    do {
      for listener in new.listeners where old?.listeners.contains(where: { $0.overlaps(listener) }) != true {
        try listener.check(service: "the control API")
      }
      reloading?.answer.server.append("HTTPS restarts")
      isAPIStale = true
    } catch {
      complain("HTTPS is not changed: \(error)")
      servingAPI = old
      servingAPI?.users = new.users
      servingAPI?.tokens = new.tokens
    }
  }

  /// Puts another server of the API in the place of this one.
  func exchangeAPI() {
    exchangeOfAPI = nil
    isAPIStale = false
    api?.stop()
    // What was changed by it last is told all the same.
    tellServerEvents()
    api = nil
    serveAgain()
    publish()
    // What was asked for meanwhile.
    wake.fire()
  }

  /// Tries again to listen where it was asked for and could not be done; every few seconds.
  func serveAgain() {
    if rtsp == nil, let serving {
      trying("RTSP") { rtsp = try serve(serving) }
    }
    if api == nil, let servingAPI {
      trying("HTTPS") { api = try serveAPI(servingAPI) }
    }
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

  /// What stays as it is is no news every time, but to whoever asks for a reload.
  func complainOnce(_ text: String, about server: String) {
    if reloading != nil || servingComplaints[server] != text { complain(text) }
    servingComplaints[server] = text
  }
}

extension TCPListener {
  /// Whether one of both is in the other's way.
  fileprivate func overlaps(_ other: TCPListener) -> Bool { port == other.port }
}

extension NetworkControlServer.Configuration {
  /// Whether one server does for both, but for who may ask.
  fileprivate func isSame(as other: Self) -> Bool {
    listeners == other.listeners && identity.isSame(as: other.identity)
  }
}

extension TLSIdentity {
  /// Whether clients are shown the same, those certificates too that vouch for it.
  fileprivate func isSame(as other: TLSIdentity) -> Bool {
    certificates == other.certificates && privateKey == other.privateKey
  }
}

extension ServerConfiguration {
  /// Whether one server does for both, but for who may watch.
  fileprivate func isSame(as other: ServerConfiguration) -> Bool {
    listeners == other.listeners && requiresEncryption == other.requiresEncryption && suite == other.suite
      && sessions == other.sessions
      && (identity == nil ? other.identity == nil : other.identity.map { identity?.isSame(as: $0) == true } == true)
  }
}
