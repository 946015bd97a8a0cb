public import Media

/// Makes guessing slow: after each failed login from an address, the next answer to it waits twice as long as the last,
/// 1 to 16 s, one after another. A value; the server sleeps.
///
/// IPv6 addresses are taken by their first 64 bits, which is what one guesser has. Only logins go through it, not the
/// requests of a connection that has logged in.
///
/// The table holds so many addresses. Who has more than that gets an early one forgotten: delays slow a guesser down, and
/// it is the password that keeps him out.
public struct FailedLogins: Sendable {
  /// The first delay, and the longest.
  public static let delays = MediaTime(seconds: 1)...MediaTime(seconds: 16)
  /// How far ahead answers may be put off; further logins are not looked at.
  public static let backlog = MediaTime(seconds: 32)
  /// After so long without a failure an address is forgotten.
  public static let memory = MediaTime(seconds: 900)
  /// The most addresses.
  public static let addressLimit = 4096

  private struct Entry {
    var delay: MediaTime
    var nextAnswer: MediaTime
    var lastFailure: MediaTime
  }

  private var entries: [[UInt8]: Entry] = [:]
  /// Failed logins since the start.
  public private(set) var total = 0
  /// Logins that were not looked at since the start.
  public private(set) var turnedAway = 0

  /// Nobody has failed yet.
  public init() {}

  /// Addresses that are remembered.
  public var addresses: Int { entries.count }

  /// Whether a login from there may be looked at now. Where not, close the connection, or answer 503, without checking
  /// it: so many answers wait already that opening more connections would be a way to guess faster.
  public mutating func mayTry(from peer: PeerAddress, at now: MediaTime) -> Bool {
    guard let entry = entries[peer.network], entry.nextAnswer - now > Self.backlog else { return true }
    turnedAway += 1
    return false
  }

  /// Notes a failed login; tells when its answer may go out.
  public mutating func noteFailure(from peer: PeerAddress, at now: MediaTime) -> MediaTime {
    total += 1
    let network = peer.network
    if entries[network] == nil, entries.count >= Self.addressLimit { makeRoom(at: now) }
    var entry = entries[network] ?? Entry(delay: Self.delays.lowerBound, nextAnswer: now, lastFailure: now)
    if now - entry.lastFailure > Self.memory { entry.delay = Self.delays.lowerBound }
    entry.nextAnswer = max(now, entry.nextAnswer) + entry.delay
    entry.delay = min(entry.delay * 2, Self.delays.upperBound)
    entry.lastFailure = now
    entries[network] = entry
    return entry.nextAnswer
  }

  /// Notes a login that succeeded, and forgets the address's failures; tells when its answer may go out: not before those
  /// that wait, or the one right guess of many would show by its haste.
  public mutating func noteSuccess(from peer: PeerAddress, at now: MediaTime) -> MediaTime {
    guard let entry = entries.removeValue(forKey: peer.network) else { return now }
    return max(now, entry.nextAnswer)
  }

  private mutating func makeRoom(at now: MediaTime) {
    entries = entries.filter { now - $0.value.lastFailure <= Self.memory }
    guard entries.count >= Self.addressLimit,
      let oldest = entries.min(by: { $0.value.lastFailure < $1.value.lastFailure })
    else { return }
    entries[oldest.key] = nil
  }
}
