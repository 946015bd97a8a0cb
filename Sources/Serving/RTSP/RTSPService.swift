import Glibc
package import NIOCore
import Platform
import RTP
import RTSP
import SRTP
import Streaming

/// The state of an RTSP server, on its event loop: cameras, connections, sessions and players.
package final class RTSPService {
  /// The current configuration: the users that may watch change.
  var configuration: RTSPServerConfiguration
  let loop: any EventLoop
  /// Work from send threads for the event loop.
  let handover: Handover
  let events: RTSPServerEvents
  let packets = PacketWriter()
  var table: SessionTable
  var authenticator: DigestAuthenticator?
  var failedLogins = FailedLogins()
  /// The presentations by path, with its slash.
  var presentations: [String: ServedPresentation] = [:]
  var connections: [UInt64: RTSPConnection] = [:]
  /// The sessions of ``table``.
  var sessions: [SessionIdentifier: ServedSession] = [:]
  var playing: [SessionIdentifier: Playing] = [:]
  /// Ended plays that may still send a BYE, by their numbers.
  var leaving: [UInt64: Playing] = [:]
  var statistics = RTSPServerStatistics()
  private var lastConnection: UInt64 = 0
  var lastPlay: UInt64 = 0
  private var lastSessionID: UInt64 = 0
  /// `true` if other machines are turned away, whatever users may watch.
  let isForThisMachineAlone: Bool

  /// The interval between checks of time limits.
  private static let tick = TimeAmount.seconds(1)
  /// The time for which the ports of a client without connection refuse packets before its session ends.
  static let gonePatience = Duration(seconds: 3)
  /// The time that the answer to PLAY waits for the other tracks once one has begun. Its packets wait too.
  static let tracksPatience = TimeAmount.milliseconds(50)

  /// Creates a service on `loop`, which checks its time limits from then on.
  package init(
    _ configuration: RTSPServerConfiguration, _ loop: any EventLoop, _ handover: Handover, _ events: RTSPServerEvents
  ) {
    self.handover = handover
    self.configuration = configuration
    self.events = events
    self.loop = loop
    isForThisMachineAlone = configuration.servesThisMachineAlone && configuration.users != nil
    table = SessionTable(
      configuration: SessionTable.Configuration(
        presentations: [:], timeoutSeconds: configuration.sessionSeconds, silenceSeconds: configuration.silenceSeconds,
        maximumSessions: configuration.sessions, maximumSessionsPerAddress: configuration.sessionsPerAddress))
    authenticator = configuration.users.map { DigestAuthenticator(users: $0, at: .now()) }
    let service = NIOLoopBound(self, eventLoop: loop)
    loop.scheduleRepeatedTask(initialDelay: Self.tick, delay: Self.tick) { _ in service.value.keepTime() }
  }

  /// Returns a number for session descriptions that no other camera of the server has or had.
  func nextSessionID() -> UInt64 {
    lastSessionID = max(lastSessionID + 1, SessionDescription.presentSessionID())
    return lastSessionID
  }

  // MARK: Connections

  /// Accepts a connection; returns nil if there are too many, or the client's machine is not served.
  func open(_ channel: any Channel, isEncrypted: Bool) -> RTSPConnection? {
    lastConnection += 1
    // A connection without an address has already ended.
    guard let connection = RTSPConnection(channel, number: lastConnection, isEncrypted: isEncrypted, self, at: .now())
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

  func closed(_ connection: RTSPConnection) {
    connection.noteClosed()
    connections[connection.number] = nil
    statistics.connections = connections.count
    for presentation in presentations.values { presentation.keys.forget(connection.number) }
    for session in table.connectionClosed(connection.number) { end(session) }
    countSessions()
  }

  func noteRefusal() { statistics.refused += 1 }

  func noteRefusal(of connection: RTSPConnection, _ reason: String) {
    noteRefusal()
    noteClosing(of: connection, reason)
  }

  /// Reports that the server has closed a connection.
  func noteClosing(of connection: RTSPConnection, _ reason: String) { events.closed(connection.client, reason: reason) }

  /// Receives RTCP that a viewer sends between its requests.
  func receive(_ frame: InterleavedFrame, on connection: RTSPConnection) {
    // RTCP also keeps a paused session alive.
    guard let stream = table.stream(onChannel: frame.channel, of: connection.number), stream.isRTCP else { return }
    table.keepAlive(stream.session, at: .now())
    playing[stream.session]?[stream.track]?.interleaved?.receive(control: frame.payload)
  }

  /// Ends all sessions and connections.
  func close() -> EventLoopFuture<Void> {
    for session in playing.keys { letGo(session, goodbye: true) }
    for presentation in presentations.values {
      // The pipeline outlives this server, and would keep streams that have no viewer any more.
      presentation.keys.endAll()
      // An empty list of groups conflicts with no destination: it cannot be refused.
      try? presentation.pipeline.reserve(groups: [])
    }
    let closing = connections.values.map { connection in
      connection.close()
      return connection.channel.closeFuture
    }
    return EventLoopFuture.andAllComplete(closing, on: loop)
  }

  private func keepTime() {
    let now = Instant.now()
    var gone: [SessionIdentifier] = []
    for (session, viewer) in playing where isGone(session, viewer, at: now) { gone.append(session) }
    for session in gone {
      table.end(session)
      end(session)
    }
    for session in table.expire(at: now) { end(session, goodbye: true) }
    let used = Set(table.sessions.values.compactMap(\.carrier))
    // One that is closing stays until TLS has ended, for seconds if its client reads nothing.
    for connection in connections.values where !connection.isOver {
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

  /// Returns the statistics so far, and the current viewers.
  func currentStatistics() -> RTSPServerStatistics {
    var statistics = statistics
    for presentation in presentations.values { statistics.viewers[presentation.name] = 0 }
    for viewer in playing.values { statistics.viewers[viewer.presentation.name, default: 0] += 1 }
    return statistics
  }
}
