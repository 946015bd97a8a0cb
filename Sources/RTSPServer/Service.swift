import Credentials
import Glibc
import Media
import NIOCore
import RTP
import RTSP
import SRTP
import Streaming

/// All that an RTSP server knows, on its event loop: cameras, connections, sessions, and who plays.
final class Service {
  /// As it is now: who may watch changes.
  var configuration: ServerConfiguration
  let loop: any EventLoop
  /// What send threads leave for it.
  let handover: Handover
  let events: ServerEvents
  let packets = PacketWriter()
  var table: SessionTable
  var authenticator: DigestAuthenticator?
  var failedLogins = FailedLogins()
  /// By path, with its slash.
  var presentations: [String: ServedPresentation] = [:]
  var connections: [UInt64: Connection] = [:]
  /// The sessions of ``table``.
  var sessions: [SessionIdentifier: ServedSession] = [:]
  var playing: [SessionIdentifier: Playing] = [:]
  /// What has ended and may still be told so by BYE, by its number.
  var leaving: [UInt64: Playing] = [:]
  var statistics = ServerStatistics()
  private var lastConnection: UInt64 = 0
  var lastPlay: UInt64 = 0
  private var lastSessionID: UInt64 = 0
  /// Whether other machines are turned away whoever may watch.
  let isForThisMachineAlone: Bool

  /// How often it is looked whether something has taken too long.
  private static let tick = TimeAmount.seconds(1)
  /// How long the answer to PLAY waits for the first picture, where the camera gives none.
  static let startPatience = TimeAmount.seconds(2)

  init(_ configuration: ServerConfiguration, _ loop: any EventLoop, _ handover: Handover, _ events: ServerEvents) {
    self.handover = handover
    self.configuration = configuration
    self.events = events
    self.loop = loop
    isForThisMachineAlone = configuration.servesThisMachineAlone && configuration.users != nil
    table = SessionTable(
      configuration: SessionTable.Configuration(
        presentations: [:], timeoutSeconds: configuration.sessionSeconds, maximumSessions: configuration.sessions,
        maximumSessionsPerAddress: configuration.sessionsPerAddress))
    authenticator = configuration.users.map { DigestAuthenticator(users: $0, at: .now()) }
    let service = NIOLoopBound(self, eventLoop: loop)
    loop.scheduleRepeatedTask(initialDelay: Self.tick, delay: Self.tick) { _ in service.value.keepTime() }
  }

  /// A number for session descriptions that no other camera of the server has or had.
  func nextSessionID() -> UInt64 {
    // NTP seconds, as RFC 8866 section 5.2 suggests.
    lastSessionID = max(lastSessionID + 1, UInt64(time(nil)) &+ 2_208_988_800)
    return lastSessionID
  }

  // MARK: Connections

  /// Takes up a connection; nil where there are too many, or it is from elsewhere than is served.
  func open(_ channel: any Channel, isEncrypted: Bool) -> Connection? {
    lastConnection += 1
    // One without an address has gone already.
    guard let connection = Connection(channel, number: lastConnection, isEncrypted: isEncrypted, self, at: .now())
    else { return nil }
    guard !configuration.servesThisMachineAlone || connection.isFromHere else {
      events.cameFromElsewhere()
      return nil
    }
    // One host has many IPv6 addresses.
    guard makeRoom(for: connection.peer?.network) else {
      statistics.turnedAway += 1
      events.turnedAway()
      return nil
    }
    connections[connection.number] = connection
    statistics.connections = connections.count
    return connection
  }

  func closed(_ connection: Connection) {
    connection.noteClosed()
    connections[connection.number] = nil
    statistics.connections = connections.count
    for presentation in presentations.values { presentation.keys.forget(connection.number) }
    for session in table.connectionClosed(connection.number) { end(session) }
    countSessions()
  }

  func noteRefusal() { statistics.refused += 1 }

  func noteRefusal(of connection: Connection, _ reason: String) {
    noteRefusal()
    noteClosing(of: connection, reason)
  }

  /// Has it told that a connection is closed by us.
  func noteClosing(of connection: Connection, _ reason: String) { events.closed(connection.client, reason: reason) }

  /// Takes RTCP that a viewer sends between its requests.
  func receive(_ frame: InterleavedFrame, on connection: Connection) {
    // One that has paused lives by it too.
    guard let stream = table.stream(onChannel: frame.channel, of: connection.number), stream.isRTCP else { return }
    table.keepAlive(stream.session, at: .now())
    playing[stream.session]?.interleaved?.receive(control: frame.payload)
  }

  /// Ends all sessions and connections.
  func close() -> EventLoopFuture<Void> {
    for session in playing.keys { letGo(session, goodbye: true) }
    for presentation in presentations.values {
      // The pipeline outlives this server, and would keep streams that nobody gets any more.
      presentation.keys.endAll()
      // No group at all is in no destination's way: it cannot be refused.
      try? presentation.pipeline.reserve(groups: [])
    }
    let closing = connections.values.map { connection in
      connection.close()
      return connection.channel.closeFuture
    }
    return EventLoopFuture.andAllComplete(closing, on: loop)
  }

  private func keepTime() {
    let now = MediaTime.now()
    // RTCP over UDP comes to the send thread.
    for (session, viewer) in playing {
      guard let id = viewer.viewer, let heard = viewer.presentation.pipeline.statistics(of: id)?.lastHeard,
        heard > viewer.lastHeard
      else { continue }
      playing[session]?.lastHeard = heard
      table.keepAlive(session, at: heard)
    }
    for session in table.expire(at: now) { end(session, goodbye: true) }
    let used = Set(table.sessions.values.map(\.connection))
    for connection in connections.values {
      let hasSession = used.contains(connection.number)
      guard let complaint = connection.complaint(at: now, hasSession: hasSession, configuration) else { continue }
      noteClosing(of: connection, complaint)
      connection.close()
    }
    countSessions()
  }

  func countSessions() {
    statistics.sessions = table.sessions.count
    statistics.playing = playing.count
  }

  /// What happened so far, and who watches what now.
  func currentStatistics() -> ServerStatistics {
    var statistics = statistics
    for presentation in presentations.values { statistics.viewers[presentation.name] = 0 }
    for viewer in playing.values { statistics.viewers[viewer.presentation.name, default: 0] += 1 }
    return statistics
  }
}
