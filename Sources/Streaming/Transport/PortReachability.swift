import Platform

/// A judgement on whether a program listens at a viewer's port, from ICMP's refusals of the packets sent to it
/// (`ECONNREFUSED`).
///
/// On this host each packet is refused. Over a network a host reports that at most once a second (Linux:
/// `icmp_ratelimit`). So silence means something only once it is longer than it was between refusals.
struct PortReachability {
  /// `true` if packets were refused, and nothing has shown since then that a program listens.
  private(set) var isRefused = false
  private var lastRefusal: Instant?
  /// The longest time between two refusals while no program listened.
  private var silence = Duration.zero
  private var reachableSince: Instant?

  /// The shortest silence that means that a program listens.
  static let leastSilence = Duration.milliseconds(100)
  /// The time of listening that is certain. A refusal after it shows that the silence measured before was a wrong
  /// guess.
  static let certainty = Duration(seconds: 10)

  /// Notes that a packet was refused.
  mutating func noteRefusal(at now: Instant) {
    if let reachableSince, now - reachableSince > Self.certainty {
      silence = .zero
    } else if let lastRefusal {
      silence = max(silence, now - lastRefusal)
    }
    (lastRefusal, reachableSince, isRefused) = (now, nil, true)
  }

  /// Returns `true` if nothing was refused of late.
  func isSilent(at now: Instant) -> Bool {
    lastRefusal.map { now - $0 > Self.leastSilence } ?? true
  }

  /// Notes that a frame has left and none of it was refused. Returns `true` if that shows that a program listens again.
  mutating func noteSent(at now: Instant) -> Bool {
    guard isRefused, let lastRefusal, now - lastRefusal > max(Self.leastSilence, silence + silence) else {
      return false
    }
    (reachableSince, isRefused) = (now, false)
    return true
  }
}
