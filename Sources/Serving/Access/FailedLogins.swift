package import Platform

/// Slows down guessing: after each failed login from an address, the next answer to it waits twice as long as the last,
/// 1 to 16 s, one after another. The first is answered at once: a page or player whose login was taken away gives each
/// question up after some seconds, and must learn why before it asks again. It is a value; the server sleeps.
///
/// IPv6 addresses count by their first 64 bits, which one attacker can have. Only logins are delayed, not the requests
/// of a connection that has logged in.
///
/// The table holds a limited number of addresses. An attacker with more addresses gets an early one forgotten: delays
/// slow an attacker down, and the password is the protection.
package struct FailedLogins: Sendable {
  /// The first delay, and the longest one.
  package static let delays = Duration(seconds: 1)...Duration(seconds: 16)
  /// The longest time by which answers may be delayed; further logins are not checked.
  package static let backlog = Duration(seconds: 32)
  /// The time without a failure after which an address is forgotten.
  package static let memory = Duration(seconds: 900)
  /// The most addresses.
  package static let addressLimit = 4096

  private struct Entry {
    var backOff = RetryBackOff(FailedLogins.delays)
    var nextAnswer: Instant
    var lastFailure: Instant
  }

  private var entries: [[UInt8]: Entry] = [:]
  /// Failed logins since the start.
  package private(set) var total = 0
  /// Logins that were not checked since the start.
  package private(set) var turnedAway = 0

  /// Creates a table without failures.
  package init() {}

  /// The number of addresses in the table.
  package var addresses: Int { entries.count }

  /// Returns `true` if a login from this address may be checked now. If not, close the connection or answer 503 without
  /// checking it: so many answers wait already that further connections would allow faster guessing.
  package mutating func mayTry(from peer: PeerAddress, at now: Instant) -> Bool {
    guard let entry = entries[peer.network], entry.nextAnswer - now > Self.backlog else { return true }
    turnedAway += 1
    return false
  }

  /// Notes a failed login; returns the time of its answer.
  package mutating func noteFailure(from peer: PeerAddress, at now: Instant) -> Instant {
    total += 1
    let network = peer.network
    if entries[network] == nil, entries.count >= Self.addressLimit { makeRoom(at: now) }
    var entry = entries[network] ?? Entry(nextAnswer: now, lastFailure: now)
    if now - entry.lastFailure > Self.memory { entry.backOff.reset() }
    let answer = max(now, entry.nextAnswer)
    entry.nextAnswer = answer + entry.backOff.failed()
    entry.lastFailure = now
    entries[network] = entry
    return answer
  }

  /// Notes a successful login, after which delays begin anew; returns the time of its answer. It is not before the
  /// waiting answers: otherwise its speed would reveal the one right guess among many. Nor are answers to later logins:
  /// otherwise one who has a login guessed at full speed for another, with a login of their own after each guess.
  package mutating func noteSuccess(from peer: PeerAddress, at now: Instant) -> Instant {
    let network = peer.network
    guard var entry = entries.removeValue(forKey: network), entry.nextAnswer > now else { return now }
    entry.backOff.reset()
    entries[network] = entry
    return entry.nextAnswer
  }

  private mutating func makeRoom(at now: Instant) {
    entries = entries.filter { now - $0.value.lastFailure <= Self.memory }
    guard entries.count >= Self.addressLimit,
      let oldest = entries.min(by: { $0.value.lastFailure < $1.value.lastFailure })
    else { return }
    entries[oldest.key] = nil
  }
}
