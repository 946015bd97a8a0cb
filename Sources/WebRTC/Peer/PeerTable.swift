package import Platform

/// All sessions of the one port, found by the fragment of a check, and by the path of everything else.
///
/// The table has no socket and no clock. What it holds is limited: sessions in all, sessions that no handshake has
/// completed, and paths of each session.
package struct PeerTable: ~Copyable {
  /// The identity of a session in the table, which no other one has or had.
  package struct Identity: Hashable, Sendable {
    /// The number.
    package let number: UInt64
  }

  /// The limits of a table.
  package struct Limits: Hashable, Sendable {
    /// The most sessions.
    package var sessions: Int
    /// The most sessions whose handshake is not complete.
    package var unestablished: Int
    /// The most sessions of one client's network whose handshake is not complete.
    package var unestablishedPerNetwork: Int

    /// Creates limits.
    package init(sessions: Int = 128, unestablished: Int = 64, unestablishedPerNetwork: Int = 16) {
      self.sessions = sessions
      self.unestablished = unestablished
      self.unestablishedPerNetwork = unestablishedPerNetwork
    }
  }

  /// The fate of a datagram.
  package enum Reception: Hashable, Sendable {
    /// It came from nobody that is known, and was dropped.
    case refused
    /// It came from a peer of the table.
    case taken
    /// It was a check, by which its sender has proved to be at the path.
    case proved
  }

  /// Counts of what came from nobody that is known.
  package struct Counts: Hashable, Sendable {
    /// Checks for a session that are no STUN message.
    package var malformed: UInt64 = 0
    /// Checks for no session, without its password, or from a path of another session.
    package var refusedChecks: UInt64 = 0
    /// Other datagrams on unknown paths.
    package var unknown: UInt64 = 0
  }

  private struct Entry {
    let session: PeerSession
    let network: [UInt8]
    /// The paths that lead to the session.
    var paths: [PeerPath] = []
  }

  /// The time without a check after which another session may have the path: that of a browser that has gone without a
  /// word, and behind a NAT another one has come.
  package static let pathHold = Duration(seconds: 10)

  /// The limits.
  package let limits: Limits
  /// The counts.
  package private(set) var counts = Counts()
  private var entries: [Identity: Entry] = [:]
  private var identities: [String: Identity] = [:]
  private var paths: [PeerPath: Identity] = [:]
  private var lastNumber: UInt64 = 0

  /// Creates a table without sessions.
  package init(limits: Limits = Limits()) { self.limits = limits }

  /// The number of sessions.
  package var count: Int { entries.count }

  /// Returns a session.
  package subscript(identity: Identity) -> PeerSession? { entries[identity]?.session }

  /// Adds the session of an offer.
  ///
  /// - Parameter network: the bytes of the client's address that one person cannot choose: all four of IPv4, the first
  ///   eight of IPv6.
  /// - Returns: `nil` if there are too many.
  package mutating func add(_ session: PeerSession, from network: [UInt8]) -> Identity? {
    let unestablished = entries.values.filter { $0.session.state != .established }
    guard entries.count < limits.sessions, unestablished.count < limits.unestablished,
      unestablished.count(where: { $0.network == network }) < limits.unestablishedPerNetwork,
      identities[session.agent.local.fragment] == nil
    else { return nil }
    lastNumber += 1
    let identity = Identity(number: lastNumber)
    entries[identity] = Entry(session: session, network: network)
    identities[session.agent.local.fragment] = identity
    return identity
  }

  /// Returns `true` if a path leads to a session.
  package func knows(_ path: PeerPath) -> Bool { paths[path] != nil }

  /// Takes a datagram from `path`.
  @discardableResult
  package mutating func receive(
    _ datagram: UnsafeRawBufferPointer, from path: PeerPath, at time: Instant,
    _ output: (Identity, PeerSession.Output) -> Void
  ) -> Reception {
    guard DatagramKind(datagram) == .stun else {
      guard let identity = paths[path], let entry = entries[identity] else {
        counts.unknown += 1
        return .refused
      }
      entry.session.receive(datagram, from: path, at: time) { output(identity, $0) }
      removeIfEnded(identity)
      return .taken
    }
    guard let fragment = STUNMessage.receiverFragment(of: datagram), let identity = identities[fragment],
      let entry = entries[identity]
    else {
      counts.refusedChecks += 1
      return .refused
    }
    let message: STUNMessage
    do throws(STUNError) { message = try STUNMessage(datagram) } catch {
      counts.malformed += 1
      return .refused
    }
    guard takeOver(path, for: identity, by: message, at: time, output),
      entry.session.receive(check: message, from: path, at: time, { output(identity, $0) })
    else {
      counts.refusedChecks += 1
      return .refused
    }
    if paths.updateValue(identity, forKey: path) == nil { note(path, of: identity) }
    return .proved
  }

  /// Adds a path of a session, and forgets those that the session has given up for it.
  private mutating func note(_ path: PeerPath, of identity: Identity) {
    guard let entry = entries[identity] else { return }
    for former in entry.paths where !entry.session.agent.knows(former) { paths[former] = nil }
    entries[identity]?.paths = entry.paths.filter(entry.session.agent.knows) + [path]
  }

  /// Takes a path away from another session that has not been heard there for ``pathHold``. Returns `false` if the check
  /// is not of the session's peer, or the path is still another one's.
  private mutating func takeOver(
    _ path: PeerPath, for identity: Identity, by message: STUNMessage, at time: Instant,
    _ output: (Identity, PeerSession.Output) -> Void
  ) -> Bool {
    guard let owner = paths[path], owner != identity, let other = entries[owner] else { return true }
    guard entries[identity]?.session.agent.isProved(message) == true,
      other.session.agent.lastCheck(on: path).map({ time - $0 > Self.pathHold }) ?? true
    else { return false }
    forget(path, output)
    return true
  }

  /// Notes that a path is closed, such as a TCP connection.
  package mutating func forget(_ path: PeerPath, _ output: (Identity, PeerSession.Output) -> Void) {
    guard let identity = paths.removeValue(forKey: path) else { return }
    entries[identity]?.paths.removeAll { $0 == path }
    entries[identity]?.session.forget(path) { output(identity, $0) }
  }

  /// The time at which ``expire(at:_:)`` is to be called; `nil` without sessions.
  package var nextDeadline: Instant? { entries.values.lazy.compactMap(\.session.deadline).min() }

  /// Does what is due.
  package mutating func expire(at time: Instant, _ output: (Identity, PeerSession.Output) -> Void) {
    let due = entries.filter { $0.value.session.deadline.map { $0 <= time } ?? false }
    for (identity, entry) in due {
      entry.session.expire(at: time) { output(identity, $0) }
      removeIfEnded(identity)
    }
  }

  /// Ends a session for a reason of this side's. Returns `false` if there is no such session.
  @discardableResult
  package mutating func end(
    _ identity: Identity, _ reason: PeerEnd = .local, _ output: (Identity, PeerSession.Output) -> Void
  ) -> Bool {
    guard let entry = entries[identity] else { return false }
    entry.session.end(reason) { output(identity, $0) }
    removeIfEnded(identity)
    return true
  }

  private mutating func removeIfEnded(_ identity: Identity) {
    guard let entry = entries[identity], case .ended = entry.session.state else { return }
    entries[identity] = nil
    identities[entry.session.agent.local.fragment] = nil
    for path in entry.paths { paths[path] = nil }
  }
}
