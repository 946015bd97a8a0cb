import Media

/// The last request counter (`nc`) of every nonce that is in use, RFC 7616 section 3.4.5: each must be above the one
/// before.
///
/// It holds so many nonces at most. Where it is full, the oldest goes, and with it every nonce as old that is not in the
/// table: it would otherwise be forgotten what those were used for.
struct ReplayTable {
  private struct Entry {
    var count: UInt32
    let issued: MediaTime
  }

  private var entries: [UInt64: Entry] = [:]
  private var forgottenUntil: MediaTime?
  private let limit: Int
  private let life: MediaTime

  init(limit: Int, life: MediaTime) {
    self.limit = limit
    self.life = life
  }

  var count: Int { entries.count }

  /// Notes a request that was otherwise right; false where it is none that may come now.
  mutating func note(_ nonce: NonceIssuer.Nonce, count: UInt32, at elapsed: MediaTime) -> Bool {
    if let entry = entries[nonce.number] {
      guard count > entry.count else { return false }
      entries[nonce.number]?.count = count
      return true
    }
    if let forgottenUntil, nonce.issued <= forgottenUntil { return false }
    if entries.count >= limit { makeRoom(at: elapsed) }
    // It may be as old itself as what had to go.
    if let forgottenUntil, nonce.issued <= forgottenUntil { return false }
    entries[nonce.number] = Entry(count: count, issued: nonce.issued)
    return true
  }

  private mutating func makeRoom(at elapsed: MediaTime) {
    let life = life
    entries = entries.filter { elapsed - $0.value.issued <= life }
    guard entries.count >= limit, let oldest = entries.min(by: { $0.value.issued < $1.value.issued }) else { return }
    entries[oldest.key] = nil
    forgottenUntil = max(forgottenUntil ?? oldest.value.issued, oldest.value.issued)
  }
}
