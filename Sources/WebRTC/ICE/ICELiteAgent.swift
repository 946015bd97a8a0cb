package import Platform

/// The connectivity checks of one peer, by a lite agent (RFC 8445 section 2.5): it answers checks and sends none, is
/// always the controlled one, and sends media on the pair that the peer nominates.
///
/// The agent answers only checks that prove the session's password. So it sends nothing to a forged address or to a
/// scanner.
package struct ICELiteAgent: Sendable {
  /// The credentials of this side, which the answer has told.
  package let local: ICECredentials
  /// The credentials of the peer, from its offer.
  package let remote: ICECredentials
  /// The paths on which checks have come, the one that was heard last at the end.
  package private(set) var paths: [CheckedPath] = []
  /// The chosen path among the nominated ones; `nil` before the peer has nominated one.
  package private(set) var selected: PeerPath?
  /// The time of the last check on the chosen path, without which the peer does not agree to get media there
  /// (RFC 7675 section 5.1); on any path before one is nominated, and after the chosen one has been closed.
  package var lastCheck: Instant? { current?.lastCheck ?? latestCheck }
  private var latestCheck: Instant?
  private let candidates: [Candidate]
  private let key: [UInt8]

  /// A path on which the peer has proved to be.
  package struct CheckedPath: Hashable, Sendable {
    /// The path.
    package let path: PeerPath
    /// The priority of the peer's candidate, RFC 8445 section 7.1.1.
    package let remotePriority: UInt32
    /// The priority of the pair of candidates, RFC 8445 section 6.1.2.3.
    package let priority: UInt64
    /// The time of the last check.
    package let lastCheck: Instant
    /// `true` if the last check nominated the path.
    package let isNominating: Bool
    /// `true` if the peer has ever nominated the path.
    package let isNominated: Bool
  }

  /// The most paths of one peer; the one whose check is oldest gives way.
  package static let pathLimit = 16
  /// The time after which a chosen path without checks yields to one of lower priority that is just nominated.
  package static let patience = Duration(seconds: 3)
  /// The longest time between two checks on the path that a peer uses, RFC 7675 section 5.1. A chosen path without checks
  /// for longer yields to one that was nominated before and is still checked.
  package static let checkInterval = Duration(seconds: 6)

  /// Creates an agent before the first check.
  ///
  /// - Parameter candidates: this side's candidates, as the answer lists them.
  package init(local: ICECredentials = ICECredentials(), remote: ICECredentials, candidates: [Candidate] = []) {
    (self.local, self.remote, self.candidates) = (local, remote, candidates)
    key = Array(local.password.utf8)
  }

  /// Answers a check from `path`.
  ///
  /// - Returns: the response, and `nil` where the sender has not proved to know the password.
  package mutating func answer(_ message: STUNMessage, from path: PeerPath, at time: Instant) -> [UInt8]? {
    guard isProved(message) else { return nil }
    guard message.unknownAttributes.isEmpty else {
      return STUNResponse.error(.unknownAttribute, to: message, key: key)
    }
    // The peer of a lite agent controls (RFC 8445 section 6.1.1).
    if case .controlled = message.role { return STUNResponse.error(.roleConflict, to: message, key: key) }
    note(message, from: path, at: time)
    return STUNResponse.success(to: message, from: path, key: key)
  }

  /// Returns `true` if the sender of a check knows the session's password.
  package func isProved(_ message: STUNMessage) -> Bool {
    message.method == STUNMessage.binding && message.messageClass == .request
      && message.username == "\(local.fragment):\(remote.fragment)" && message.hasIntegrity(key: key)
  }

  /// Returns the time of the last check on `path`; `nil` if the peer has not proved to be there.
  package func lastCheck(on path: PeerPath) -> Instant? { paths.last { $0.path == path }?.lastCheck }

  /// Returns `true` if the peer has proved to be at `path`.
  package func knows(_ path: PeerPath) -> Bool { paths.contains { $0.path == path } }

  /// Forgets a path that is closed. The best of the other nominated paths takes its place.
  package mutating func forget(_ path: PeerPath) {
    paths.removeAll { $0.path == path }
    guard selected == path else { return }
    selected = paths.filter(\.isNominated).max { $0.priority < $1.priority }?.path
  }

  private mutating func note(_ message: STUNMessage, from path: PeerPath, at time: Instant) {
    let former = paths.firstIndex { $0.path == path }.map { paths.remove(at: $0) }
    if paths.count == Self.pathLimit {
      // The chosen one stays.
      let oldest = paths.firstIndex { $0.path != selected } ?? 0
      paths.remove(at: oldest)
    }
    let remotePriority = message.priority ?? 0
    let checked = CheckedPath(
      path: path, remotePriority: remotePriority,
      priority: Self.pairPriority(controlling: remotePriority, controlled: localPriority(of: path)), lastCheck: time,
      isNominating: message.nominates, isNominated: message.nominates || former?.isNominated == true)
    paths.append(checked)
    latestCheck = time
    if checked.isNominated, replacesSelected(checked, at: time) { selected = path }
  }

  /// Returns `true` if a nominated path that was just checked is to be used instead of the chosen one.
  ///
  /// Peers that nominate every pair (RFC 5245 section 8.1.1.2) use the pair of the highest priority. Others nominate
  /// only the pair that they use, and no longer the one before.
  private func replacesSelected(_ checked: CheckedPath, at time: Instant) -> Bool {
    guard let current, current.path != checked.path else { return true }
    let silence = time - current.lastCheck
    guard checked.isNominating else { return silence > Self.checkInterval }
    return !current.isNominating || checked.priority > current.priority || silence > Self.patience
      || isSameCandidate(checked, current)
  }

  /// Returns `true` if both paths begin at the same candidate of the peer, to which a NAT has given another address: a
  /// peer's candidates differ in priority (RFC 8445 section 5.1.2).
  private func isSameCandidate(_ one: CheckedPath, _ other: CheckedPath) -> Bool {
    one.remotePriority == other.remotePriority && one.path.local == other.path.local
      && one.path.isDatagrams == other.path.isDatagrams
  }

  /// The priority of the candidate of this side at which the datagrams of `path` come. Behind a router that forwards the
  /// port this is the host's own one.
  private func localPriority(of path: PeerPath) -> UInt32 {
    let transport: Candidate.Transport = path.isDatagrams ? .udp : .tcpPassive
    let index =
      candidates.firstIndex { $0.transport == transport && $0.address == path.local }
      ?? candidates.firstIndex { $0.transport == transport && $0.address.isIPv6 == path.address.isIPv6 }
    return index.map { candidates[$0].priority(at: $0) } ?? 0
  }

  /// Returns the priority of a pair of candidates from their own, RFC 8445 section 6.1.2.3. More than the 31 bits that a
  /// priority has (section 5.1.2) count as the highest one.
  package static func pairPriority(controlling: UInt32, controlled: UInt32) -> UInt64 {
    let (controlling, controlled) = (min(controlling, 0x7fff_ffff), min(controlled, 0x7fff_ffff))
    return UInt64(min(controlling, controlled)) << 32 + 2 * UInt64(max(controlling, controlled))
      + (controlling > controlled ? 1 : 0)
  }

  private var current: CheckedPath? { selected.flatMap { path in paths.first { $0.path == path } } }
}
