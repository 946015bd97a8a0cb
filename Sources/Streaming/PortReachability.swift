import Media

/// Whether somebody listens at a viewer's port, by what ICMP says of the packets that are sent to it (`ECONNREFUSED`).
///
/// On this machine each packet is refused. Over a network a host says so once a second at most (Linux: `icmp_ratelimit`), so
/// silence means something only once it is longer than it was between refusals.
struct PortReachability {
  /// Whether packets were refused, and nothing has shown since then that somebody listens.
  private(set) var isRefused = false
  private var lastRefusal: MediaTime?
  /// The longest time between two refusals while nobody listened.
  private var silence = MediaTime.zero
  private var reachableSince: MediaTime?

  /// The shortest silence that means that somebody listens.
  static let leastSilence = MediaTime(nanoseconds: 100_000_000)
  /// Who has listened for so long has listened indeed; what was silence before that was a wrong guess.
  static let certainty = MediaTime(seconds: 10)

  /// A packet was refused.
  mutating func noteRefusal(at now: MediaTime) {
    if let reachableSince, now - reachableSince > Self.certainty {
      silence = .zero
    } else if let lastRefusal {
      silence = max(silence, now - lastRefusal)
    }
    (lastRefusal, reachableSince, isRefused) = (now, nil, true)
  }

  /// Whether nothing was refused of late.
  func isSilent(at now: MediaTime) -> Bool {
    lastRefusal.map { now - $0 > Self.leastSilence } ?? true
  }

  /// A frame has left, and none of it was refused; whether it shows that somebody listens again.
  mutating func noteSent(at now: MediaTime) -> Bool {
    guard isRefused, let lastRefusal, now - lastRefusal > max(Self.leastSilence, silence + silence) else {
      return false
    }
    (reachableSince, isRefused) = (now, false)
    return true
  }
}
