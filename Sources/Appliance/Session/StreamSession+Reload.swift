import Delivery
import Host
import Platform
import Serving

extension StreamSession {
  /// The time that an answer has to leave before its server is replaced.
  private static let answerTime = Duration(seconds: 0.3)

  /// Carries out a requested reload; one at a time.
  func takeReload() {
    guard table.reload == nil, let asked = control.beginReload() else { return }
    let notes = Notes()
    do {
      let new = try loadConfiguration()
      // Before the files are read: a later change is seen.
      let files = CredentialFiles(new)
      let served = try servers(of: new, notes)
      try outputs.follow(new.events.outputPlan())
      credentialFiles = files
      credentialFiles.noteOwn()
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
  func servers(of new: ApplianceConfiguration, _ notes: Notes) throws -> ServerTable.Configurations {
    let rtsp = try new.rtsp.configuration(sockets: sockets, after: serving, notes)
    let https = try new.api.configuration(new.rtsp, rtsp: rtsp, after: servingAPI, notes)
    let http = try new.http.configuration(new.rtsp, rtsp: rtsp, after: servingHTTP)
    return ServerTable.Configurations(
      rtsp: rtsp, https: https, webRTC: new.webrtc.configuration(https, http), http: http)
  }

  /// Applies the configurations of the servers; a server that changes nothing but its users stays.
  func follow(_ served: ServerTable.Configurations) {
    // The counts of servers that may be replaced now.
    control.figures.look(rtsp: rtsp, https: api, http: http, peers: peers)
    handleServers(.configured(served))
    servePeers()
  }

  private func apply(
    _ new: ApplianceConfiguration, _ served: ServerTable.Configurations, asked: Instant, _ warnings: [String]
  ) {
    let observations = Dictionary(uniqueKeysWithValues: slots.map { ($0.number, $0.observe()) })
    let effects = table.handle(
      .reload(new, isServed: served.rtsp != nil, asked: asked, warnings: warnings, observations), at: .now())
    followTable()
    alertWatch.set(new.events)
    outputs.feed.set(table.configuration.cameras.map(\.forMQTT))
    perform(effects)
    follow(served)
    handle(.serversFollowed)
  }

  /// Answers the clients that wait for the reload.
  func answer(_ answer: ReloadAnswer) {
    control.endReload(.success(answer))
    handleServers(.answered(within: Self.answerTime))
  }

  /// Tells of a failure: during a reload in its answer, which also goes to the log at its end, otherwise in the log.
  func complain(_ text: String) { handle(.complaint(nil, text)) }

  /// Tells `text` if the message is new. A reload's answer always contains it.
  func complainOnce(_ text: String, about subject: String) {
    if table.reload != nil || complaints[subject] != text { complain(text) }
    complaints[subject] = text
  }
}
