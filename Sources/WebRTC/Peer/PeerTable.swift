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

  /// Counts of what came from nobody that is known.
  package struct Counts: Hashable, Sendable {
    /// Datagrams that are no STUN message though they look like one.
    package var malformed: UInt64 = 0
    /// Checks for no session, or without its password.
    package var refusedChecks: UInt64 = 0
    /// Other datagrams on unknown paths.
    package var unknown: UInt64 = 0
  }

  private struct Entry {
    let session: PeerSession
    let network: [UInt8]
  }

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

  /// Takes a datagram from `path`.
  package mutating func receive(
    _ datagram: UnsafeRawBufferPointer, from path: PeerPath, at time: Instant,
    _ output: (Identity, PeerSession.Output) -> Void
  ) {
    guard DatagramKind(datagram) == .stun else {
      guard let identity = paths[path], let entry = entries[identity] else {
        counts.unknown += 1
        return
      }
      entry.session.receive(datagram, from: path, at: time) { output(identity, $0) }
      return removeIfEnded(identity)
    }
    let message: STUNMessage
    do throws(STUNError) { message = try STUNMessage(datagram) } catch {
      counts.malformed += 1
      return
    }
    guard let fragment = message.username?.prefix(while: { $0 != ":" }), let identity = identities[String(fragment)],
      let entry = entries[identity]
    else {
      counts.refusedChecks += 1
      return
    }
    guard entry.session.receive(check: message, from: path, at: time, { output(identity, $0) }) else {
      counts.refusedChecks += 1
      return
    }
    paths[path] = identity
    if entry.session.agent.paths.count == ICELiteAgent.pathLimit { forgetPaths(unknownTo: entry.session, identity) }
  }

  /// Forgets the paths that a session has given up for newer ones.
  private mutating func forgetPaths(unknownTo session: PeerSession, _ identity: Identity) {
    paths = paths.filter { $0.value != identity || session.agent.knows($0.key) }
  }

  /// Notes that a path is closed, such as a TCP connection.
  package mutating func forget(_ path: PeerPath, _ output: (Identity, PeerSession.Output) -> Void) {
    guard let identity = paths.removeValue(forKey: path) else { return }
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
    paths = paths.filter { $0.value != identity }
  }
}
