package import Platform

/// The last request counter (`nc`) of every nonce in use, RFC 7616 section 3.4.5: each counter must be above the one
/// before.
///
/// The table holds a limited number of nonces. If it is full, the oldest goes, and with it every equally old nonce that
/// is not in the table: otherwise the counters used with those would be forgotten.
package struct ReplayTable {
  private struct Entry {
    var count: UInt32
    let issued: Duration
  }

  private var entries: [UInt64: Entry] = [:]
  private var forgottenUntil: Duration?
  private let limit: Int
  private let life: Duration

  package init(limit: Int, life: Duration) {
    self.limit = limit
    self.life = life
  }

  package var count: Int { entries.count }

  /// Notes a request that is otherwise valid; returns `false` if its counter is not allowed now.
  package mutating func note(_ nonce: NonceIssuer.Nonce, count: UInt32, at elapsed: Duration) -> Bool {
    if let entry = entries[nonce.number] {
      guard count > entry.count else { return false }
      entries[nonce.number]?.count = count
      return true
    }
    if let forgottenUntil, nonce.issued <= forgottenUntil { return false }
    if entries.count >= limit { makeRoom(at: elapsed) }
    // The nonce itself may be as old as the one that was removed.
    if let forgottenUntil, nonce.issued <= forgottenUntil { return false }
    entries[nonce.number] = Entry(count: count, issued: nonce.issued)
    return true
  }

  private mutating func makeRoom(at elapsed: Duration) {
    let life = life
    entries = entries.filter { elapsed - $0.value.issued <= life }
    guard entries.count >= limit, let oldest = entries.min(by: { $0.value.issued < $1.value.issued }) else { return }
    entries[oldest.key] = nil
    forgottenUntil = max(forgottenUntil ?? oldest.value.issued, oldest.value.issued)
  }
}
