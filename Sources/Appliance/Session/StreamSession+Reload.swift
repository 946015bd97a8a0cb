import Host
import Platform
import Serving

extension StreamSession {
  /// The time that an answer has to leave before its server is replaced.
  private static let answerTime = Duration(seconds: 0.3)

  /// The configurations of the servers; nil for a server that is not wanted.
  struct Served {
    var rtsp: RTSPServerConfiguration?
    var api: NetworkControlServer.Configuration?
    var http: ReadingServer.Configuration?
  }

  /// Carries out a requested reload; one at a time.
  func takeReload() {
    guard table.reload == nil, let asked = control.beginReload() else { return }
    let notes = Notes()
    do {
      let new = try loadConfiguration()
      // Before the files are read: a later change is seen.
      let files = CredentialFiles(new)
      let served = try servers(of: new, notes)
      credentialFiles = files
      var warnings = new.warnings + new.overridden(since: configuration)
      // Notes that a server tells once at its start are not repeated while that server goes on.
      warnings += notes.take().filter { $0.level == .warning }.map(\.text)
      warnings += new.changes(from: configuration).filter(\.isForStart).map(\.rawValue).sorted().map {
        "\($0): from the next start on"
      }
      apply(new, served, asked: asked, warnings)
    } catch {
      terminal.line("not reloaded, nothing has changed: \(error)", .error, event: "reload_refused")
      control.endReload(.failure(error))
    }
  }

  /// Returns the configurations of the servers, from the configuration and the files that it names.
  func servers(of new: ApplianceConfiguration, _ notes: Notes) throws -> Served {
    let rtsp = try new.rtsp.configuration(sockets: sockets, after: serving, notes)
    return Served(
      rtsp: rtsp, api: try new.api.configuration(new.rtsp, rtsp: rtsp, after: servingAPI, notes),
      http: try new.http.configuration(new.rtsp, rtsp: rtsp, after: servingHTTP))
  }

  /// Applies the configurations of the servers; a server that changes nothing but its users stays.
  ///
  /// - Parameter before: is called once the configurations are set, before any server follows.
  func follow(_ served: Served, before: () -> Void = {}) {
    // The counts of servers that may be replaced now.
    control.figures.look(rtsp: rtsp, https: api, http: http)
    let old = Served(rtsp: serving, api: servingAPI, http: servingHTTP)
    (serving, servingAPI, servingHTTP) = (served.rtsp, served.api, served.http)
    before()
    serveAnew(old.rtsp)
    serveAPIAnew(old.api)
    servePeers()
    serveHTTPAnew(old.http)
  }

  private func apply(_ new: ApplianceConfiguration, _ served: Served, asked: Instant, _ warnings: [String]) {
    follow(served) {
      let observations = Dictionary(uniqueKeysWithValues: slots.map { ($0.number, $0.observe()) })
      let effects = table.handle(
        .reload(new, isServed: served.rtsp != nil, asked: asked, warnings: warnings, observations), at: .now())
      followTable()
      perform(effects)
    }
    handle(.serversFollowed)
  }

  /// Answers the clients that wait for the reload.
  func answer(_ answer: ReloadAnswer) {
    control.endReload(.success(answer))
    if isAPIStale { exchangeOfAPI = .now() + Self.answerTime }
  }

  /// Tells of a failure: during a reload in its answer, which also goes to the log at its end, otherwise in the log.
  func complain(_ text: String) { handle(.complaint(nil, text)) }
}
