package import Platform

/// The connectivity checks of one peer, by a lite agent (RFC 8445 section 2.5): it answers checks and sends none, is
/// always the controlled one, and sends media on the pair that the peer nominates.
///
/// What does not prove to know the session's password gets no answer at all: neither an address that somebody has
/// forged, nor a scanner, makes this side send anything.
package struct ICELiteAgent: Sendable {
  /// The credentials of this side, which the answer has told.
  package let local: ICECredentials
  /// The credentials of the peer, from its offer.
  package let remote: ICECredentials
  /// The paths on which checks have come, the one that was heard last at the end.
  package private(set) var paths: [CheckedPath] = []
  /// The nominated path; `nil` before the peer has nominated one.
  package private(set) var selected: PeerPath?
  /// The time of the last check on the nominated path, without which the peer does not agree to get media there
  /// (RFC 7675 section 5.1); on any path before one is nominated.
  package var lastCheck: Instant? { (current ?? paths.last)?.lastCheck }
  private let key: [UInt8]

  /// A path on which the peer has proved to be.
  package struct CheckedPath: Hashable, Sendable {
    /// The path.
    package let path: PeerPath
    /// The priority that the peer gives it, RFC 8445 section 7.1.1.
    package var priority: UInt32
    /// The time of the last check.
    package var lastCheck: Instant
    /// `true` if the last check nominated the path.
    package var isNominated: Bool
  }

  /// The most paths of one peer; the one whose check is oldest gives way.
  package static let pathLimit = 16
  /// The time after which a nominated path without checks yields to one of lower priority.
  package static let patience = Duration(seconds: 3)

  /// Creates an agent before the first check.
  package init(local: ICECredentials = ICECredentials(), remote: ICECredentials) {
    (self.local, self.remote) = (local, remote)
    key = Array(local.password.utf8)
  }

  /// Answers a check from `path`.
  ///
  /// - Returns: the response, and `nil` where the sender has not proved to know the password.
  package mutating func answer(_ message: STUNMessage, from path: PeerPath, at time: Instant) -> [UInt8]? {
    guard message.method == STUNMessage.binding, message.messageClass == .request,
      message.username == "\(local.fragment):\(remote.fragment)", message.hasIntegrity(key: key)
    else { return nil }
    guard message.unknownAttributes.isEmpty else {
      return STUNResponse.error(.unknownAttribute, to: message, key: key)
    }
    // The peer of a lite agent controls (RFC 8445 section 6.1.1).
    if case .controlled = message.role { return STUNResponse.error(.roleConflict, to: message, key: key) }
    note(message, from: path, at: time)
    return STUNResponse.success(to: message, from: path, key: key)
  }

  /// Returns `true` if the peer has proved to be at `path`.
  package func knows(_ path: PeerPath) -> Bool { paths.contains { $0.path == path } }

  /// Forgets a path that is closed.
  package mutating func forget(_ path: PeerPath) {
    paths.removeAll { $0.path == path }
    if selected == path { selected = nil }
  }

  private mutating func note(_ message: STUNMessage, from path: PeerPath, at time: Instant) {
    let priority = message.priority ?? 0
    paths.removeAll { $0.path == path }
    if paths.count == Self.pathLimit {
      // The nominated one stays.
      let oldest = paths.firstIndex { $0.path != selected } ?? 0
      paths.remove(at: oldest)
    }
    paths.append(
      CheckedPath(path: path, priority: priority, lastCheck: time, isNominated: message.nominates))
    if message.nominates, isBetter(path, priority, at: time) { selected = path }
  }

  /// Peers that nominate every pair (RFC 5245 section 8.1.1.2) mean the one of the highest priority. Others nominate
  /// only the pair that they use, and do so no longer with the one before.
  private func isBetter(_ path: PeerPath, _ priority: UInt32, at time: Instant) -> Bool {
    guard let current, current.path != path else { return true }
    return priority >= current.priority || !current.isNominated || time - current.lastCheck > Self.patience
  }

  private var current: CheckedPath? { selected.flatMap { path in paths.first { $0.path == path } } }
}
