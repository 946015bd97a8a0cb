import Credentials
import Media
import RTP
import RTSP
import Streaming

/// What changes while it serves.
extension Service {
  /// Serves `new` from now on. Whoever watches a camera that stays as it is loses nothing.
  ///
  /// - Throws: As ``RTSPServer/setPresentations(_:)``.
  func set(_ given: [Presentation]) throws {
    defer { countSessions() }
    var groups = try Presentation.groups(of: given)
    guard let refusal = (given.lazy.compactMap { Self.refusal(of: groups, by: $0) }.first) else { return serve(given) }
    // The groups stay as they were, and no camera is lost for what another is refused.
    var new = given
    for index in new.indices { new[index].group = presentations["/\(new[index].name)"]?.group }
    groups = try Presentation.groups(of: new)
    serve(new.filter { Self.refusal(of: groups, by: $0) == nil })
    throw refusal
  }

  /// Keeps the groups of all cameras free of the destinations of one; why that cannot be.
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
      guard let kept = former["/\(presentation.name)"], kept.isSame(as: presentation) else { continue }
      presentations["/\(kept.name)"] = kept
      guard kept.group != presentation.group else { continue }
      // Those too that have been told the group, and have yet to play.
      let members = table.sessions.values.filter { $0.transports.values.contains { $0.delivery == .multicast } }
      end(sessions: members.map(\.identifier).filter { sessions[$0]?.presentation === kept })
      kept.set(presentation.group, requiresEncryption: configuration.requiresEncryption)
    }
    for (path, gone) in former where presentations[path] == nil {
      end(sessions: sessions.filter { $0.value.presentation === gone }.map(\.key))
      gone.keys.endAll()
      // No group at all is in no destination's way: it cannot be refused.
      if !new.contains(where: { $0.pipeline === gone.pipeline }) { try? gone.pipeline.reserve(groups: []) }
    }
    for presentation in new where presentations["/\(presentation.name)"] == nil {
      presentations["/\(presentation.name)"] = ServedPresentation(
        presentation, configuration, sessionID: nextSessionID())
    }
    table.configuration.presentations = presentations.mapValues { _ in 1 }
    table.configuration.transportsByPath = presentations.mapValues { $0.transports(configuration) }
  }

  /// Ends sessions because their camera does, and the connections whose packets they were: a player that waits for more
  /// on one tries again at once when it is closed. A connection stays while it has another session.
  private func end(sessions ended: [SessionIdentifier]) {
    var carriers: Set<UInt64> = []
    for session in ended {
      if let entry = table[session], entry.isInterleaved { carriers.insert(entry.connection) }
      table.end(session)
      end(session, goodbye: true)
    }
    let used = Set(table.sessions.values.map(\.connection))
    for number in carriers.subtracting(used) { connections[number]?.closeAfterGoodbye() }
  }

  /// Lets in `users` from now on, and throws out who is none of them.
  func set(users: UsersFile?) {
    configuration.users = users
    configuration.servesThisMachineAlone = users == nil || isForThisMachineAlone
    if let users {
      if authenticator == nil { authenticator = DigestAuthenticator(users: users, at: .now()) }
      // What was asked before is asked for still.
      authenticator?.users = users
    } else {
      authenticator = nil
    }
    // A session is its client's, not its connection's, and may have none.
    for (session, entry) in sessions {
      let isHere = table[session].flatMap { try? SocketAddress(host: "\($0.client)", port: 1) }?.isLoopback ?? false
      guard !mayWatch(entry.user, isFromHere: isHere) else { continue }
      let connection = playing[session]?.connection ?? table[session]?.connection
      table.end(session)
      end(session, goodbye: true)
      // Of one who had not to log in, the session was all that could be seen.
      if let connection = connection.flatMap({ connections[$0] }), connection.user == nil { expel(connection) }
    }
    for connection in connections.values {
      let isKnown = users == nil || connection.user != nil
      if isKnown, !mayWatch(connection.user, isFromHere: connection.isFromHere) { expel(connection) }
    }
    countSessions()
  }

  /// Whether somebody may who has proved to be `user`, or nobody.
  private func mayWatch(_ user: UsersFile.User?, isFromHere: Bool) -> Bool {
    guard let users = configuration.users else { return isFromHere }
    return user.map { users.has($0) && users[$0.name].map { $0.role >= .view } == true } ?? false
  }

  private func expel(_ connection: Connection) {
    guard !connection.isOver else { return }
    noteClosing(of: connection, "who may watch has changed, and it may not")
    connection.closeAfterGoodbye()
  }
}

extension UsersFile {
  /// Whether `user` is one of them still, with the password of then: as far as can be told by the algorithms that both
  /// have.
  fileprivate func has(_ user: User) -> Bool {
    guard let hashes = self[user.name]?.hashes else { return false }
    let common = user.hashes.filter { hashes[$0.key] != nil }
    return !common.isEmpty && common.allSatisfy { hashes[$0.key] == $0.value }
  }
}
