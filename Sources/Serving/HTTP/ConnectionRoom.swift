import NIOCore
import Platform
import Synchronization

/// The open connections of a server and the room for more.
///
/// If the room is short, the least important connection makes room for a new one: one without a request before those that
/// wait for their next request, the oldest first, of the network that has most of them. A connection whose request is in
/// progress, or whose answer has no end, is never closed for another.
final class ConnectionRoom: Sendable {
  /// The state of one connection.
  private struct Entry {
    let network: [UInt8]
    let close: @Sendable () -> Void
    /// `false` for a connection that only gets the reason why it is not served.
    let isAdmitted: Bool
    /// `true` once a request has come.
    var hasAsked = false
    /// The number of requests without a complete answer.
    var requests = 0
    /// The beginning of the connection, or the end of the last answer.
    var idleSince: Instant
  }

  /// The result of adding a connection.
  enum Admission: Hashable {
    case admitted
    /// There is no room in the server.
    case full
    /// There is no room for another connection of this network.
    case networkIsFull
  }

  private let limit: Int
  private let limitOfNetwork: Int
  private let closesOthers: Bool
  private let entries = Mutex<[ObjectIdentifier: Entry]>([:])

  /// Creates room for `limit` connections, of which one network may have `limitOfNetwork`.
  ///
  /// - Parameter closesOthers: `false` never closes a connection for a new one.
  init(_ limit: Int, ofNetwork limitOfNetwork: Int, closesOthers: Bool) {
    (self.limit, self.limitOfNetwork, self.closesOthers) = (limit, limitOfNetwork, closesOthers)
  }

  /// The number of connections, those included that were not admitted and have not ended.
  var count: Int { entries.withLock { $0.count } }

  /// Adds a connection, and closes another one for it if necessary.
  ///
  /// - Parameters:
  ///   - network: the client's network; empty for a client of this host, whose connections have no share of their own.
  ///   - close: closes the connection at once. It must not call this object.
  func add(
    _ connection: ObjectIdentifier, from network: [UInt8], at time: Instant, close: @escaping @Sendable () -> Void
  ) -> Admission {
    let (admission, closed) = entries.withLock { entries in
      let (admission, least) = makeRoom(for: network, in: entries)
      let closed = least.flatMap { entries.removeValue(forKey: $0) }
      entries[connection] = Entry(
        network: network, close: close, isAdmitted: admission == .admitted, idleSince: time)
      return (admission, closed)
    }
    closed?.close()
    return admission
  }

  /// Removes a connection that has ended.
  func remove(_ connection: ObjectIdentifier) { entries.withLock { $0[connection] = nil } }

  /// Notes that a request has begun.
  func begin(_ connection: ObjectIdentifier) {
    entries.withLock {
      $0[connection]?.hasAsked = true
      $0[connection]?.requests += 1
    }
  }

  /// Notes that an answer is complete.
  func end(_ connection: ObjectIdentifier, at time: Instant) {
    entries.withLock {
      // The answer to a request that could not be parsed ends none.
      if let requests = $0[connection]?.requests { $0[connection]?.requests = max(0, requests - 1) }
      $0[connection]?.idleSince = time
    }
  }

  /// Returns the answer for a new connection, and the connection that must be closed for it.
  private func makeRoom(
    for network: [UInt8], in entries: [ObjectIdentifier: Entry]
  ) -> (Admission, closing: ObjectIdentifier?) {
    let admitted = entries.filter(\.value.isAdmitted)
    let own = admitted.filter { $0.value.network == network }
    if !network.isEmpty, own.count >= limitOfNetwork {
      // A network that fills its share costs no other one a connection.
      let least = least(of: own.map { $0 })
      return (least == nil ? .networkIsFull : .admitted, least)
    }
    guard admitted.count >= limit else { return (.admitted, nil) }
    let shares = Dictionary(grouping: admitted.filter { $0.value.requests == 0 }) { $0.value.network }
    let least = least(of: shares.values.max { $0.count < $1.count } ?? [])
    return (least == nil ? .full : .admitted, least)
  }

  private func least(of connections: [(key: ObjectIdentifier, value: Entry)]) -> ObjectIdentifier? {
    guard closesOthers else { return nil }
    return connections.filter { $0.value.requests == 0 }
      .min { ($0.value.hasAsked ? 1 : 0, $0.value.idleSince) < ($1.value.hasAsked ? 1 : 0, $1.value.idleSince) }?.key
  }
}
