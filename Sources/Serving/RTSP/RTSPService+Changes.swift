import Platform
import RTP
import RTSP
import Streaming

/// Changes to a running server.
extension RTSPService {
  /// Sets the cameras to serve. Viewers of a camera that stays the same lose nothing.
  ///
  /// - Throws: As ``RTSPServer/setPresentations(_:)``.
  func set(_ given: [Presentation]) throws {
    defer { countSessions() }
    var groups = try Presentation.groups(of: given)
    guard let refusal = (given.lazy.compactMap { Self.refusal(of: groups, by: $0) }.first) else { return serve(given) }
    // The groups stay as they were, and no camera is lost because another is refused.
    var new = given
    for index in new.indices { new[index].group = presentations["/\(new[index].name)"]?.group }
    groups = try Presentation.groups(of: new)
    serve(new.filter { Self.refusal(of: groups, by: $0) == nil })
    throw refusal
  }

  /// Keeps the groups of all cameras free of one camera's destinations; returns the error if that fails.
  private static func refusal(of groups: [SocketAddress], by presentation: Presentation) -> (any Error)? {
    do {
      try presentation.pipeline.reserve(groups: groups)
      return nil
    } catch {
      return error
    }
  }

  private func serve(_ new: [Presentation]) {
    let former = presentations
    presentations = [:]
    for presentation in new {
      for path in presentation.paths {
        if let kept = former[path], kept.isSame(as: presentation) { presentations[path] = kept }
      }
      guard let kept = presentations[presentation.paths[0]], kept.group != presentation.group else { continue }
      // Includes the sessions that know the group and do not play yet.
      let members = table.sessions.values.filter { $0.transports.values.contains { $0.delivery == .multicast } }
      end(sessions: members.map(\.identifier).filter { sessions[$0]?.presentation === kept })
      kept.set(presentation.group, requiresEncryption: configuration.requiresEncryption)
    }
    for (path, gone) in former where presentations[path] == nil {
      end(sessions: sessions.filter { $0.value.presentation === gone }.map(\.key))
      gone.keys.endAll()
      // An empty list of groups conflicts with no destination: it cannot be refused.
      if !new.contains(where: { $0.pipeline === gone.pipeline }) { try? gone.pipeline.reserve(groups: []) }
    }
    for presentation in new {
      for (index, path) in presentation.paths.enumerated() where presentations[path] == nil {
        presentations[path] = ServedPresentation(
          presentation, isH264: index > 0, configuration, sessionID: nextSessionID())
      }
    }
    table.configuration.presentations = presentations.mapValues { $0.tracks.count }
    table.configuration.renditions = Set(presentations.filter { $0.value.isH264 }.keys)
    table.configuration.transportsByPath = presentations.mapValues { $0.transports(configuration) }
  }

  /// Ends sessions because their camera's stream ends, and the connections that carried their packets. A player that
  /// waits for more packets on a connection tries again at once when it is closed. A connection stays while it has
  /// another session.
  private func end(sessions ended: [SessionIdentifier]) {
    var carriers: Set<UInt64> = []
    for session in ended {
      if let entry = table[session], entry.isInterleaved { carriers.insert(entry.connection) }
      table.end(session)
      end(session, goodbye: true)
    }
    let used = Set(table.sessions.values.compactMap(\.carrier))
    for number in carriers.subtracting(used) { connections[number]?.closeAfterGoodbye() }
  }

  /// Sets the users that are admitted, and removes clients that are no longer among them.
  func set(users: UsersFile?) {
    configuration.users = users
    configuration.servesThisMachineAlone = users == nil || isForThisMachineAlone
    if let users {
      if authenticator == nil { authenticator = DigestAuthenticator(users: users, at: .now()) }
      // Earlier challenges stay valid.
      authenticator?.users = users
    } else {
      authenticator = nil
    }
    // A session belongs to its client, not to its connection, and may have none.
    for (session, entry) in sessions {
      let isHere = table[session].flatMap { try? SocketAddress(host: "\($0.client)", port: 1) }?.isLoopback ?? false
      guard !mayWatch(entry.user, isFromHere: isHere) else { continue }
      let connection = table[session]?.carrier
      table.end(session)
      end(session, goodbye: true)
      // The session was the only sign of a client that needed no login.
      if let connection = connection.flatMap({ connections[$0] }), connection.user == nil { expel(connection) }
    }
    for connection in connections.values {
      let isKnown = users == nil || connection.user != nil
      if isKnown, !mayWatch(connection.user, isFromHere: connection.isFromHere) { expel(connection) }
    }
    countSessions()
  }

  /// Returns `true` if a client may watch that has logged in as `user`; nil is a client without a login.
  private func mayWatch(_ user: UsersFile.User?, isFromHere: Bool) -> Bool {
    guard let users = configuration.users else { return isFromHere }
    return user.map { users.has($0) && users[$0.name].map { $0.role >= .view } == true } ?? false
  }

  private func expel(_ connection: RTSPConnection) {
    guard !connection.isOver else { return }
    noteClosing(of: connection, "the users have changed, and it may no longer watch")
    connection.closeAfterGoodbye()
  }
}

extension UsersFile {
  /// Returns `true` if `user` is still one of the users, with the same password, as far as the algorithms that both
  /// have can show.
  fileprivate func has(_ user: User) -> Bool {
    guard let hashes = self[user.name]?.hashes else { return false }
    let common = user.hashes.filter { hashes[$0.key] != nil }
    return !common.isEmpty && common.allSatisfy { hashes[$0.key] == $0.value }
  }
}
