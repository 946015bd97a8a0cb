package import Platform

/// A judgement on whether a program listens at a viewer's port, from ICMP's refusals of the packets sent to it
/// (`ECONNREFUSED`).
///
/// On this host each packet is refused, so the first frame without a refusal shows that a program listens. Over a network a host
/// reports that at most once a second (Linux: `icmp_ratelimit`). Then silence means something only once it is longer than it was
/// between refusals.
package struct PortReachability {
  /// `true` if packets were refused, and nothing has shown since then that a program listens.
  package private(set) var isRefused = false
  private var lastRefusal: Instant?
  /// The longest time between two refusals while no program listened.
  private var silence = Duration.zero
  private var reachableSince: Instant?
  /// `true` if something was refused since the last frame left.
  private var isFrameRefused = false
  /// The number of frames in a row of which something was refused.
  private var refusedFrames = 0
  /// The number of such frames after which a frame without a refusal means something.
  private var regularity = Self.leastRegularity
  /// `true` if the last judgement came from a single frame without a refusal.
  private var wasRegular = false

  /// Creates a record of a port that has refused nothing.
  package init() {}

  /// The fewest frames in a row for ``regularity``: a Linux host that limits its reports sends the first six at once.
  package static let leastRegularity = 8
  /// The most frames that wrong guesses make of ``regularity``.
  package static let mostRegularity = 64
  /// The shortest silence that means that a program listens.
  static let leastSilence = Duration.milliseconds(100)
  /// The time of listening that is certain. A refusal after it shows that the silence measured before was a wrong
  /// guess.
  static let certainty = Duration(seconds: 10)

  /// Notes that a packet was refused.
  package mutating func noteRefusal(at now: Instant) {
    isFrameRefused = true
    if let reachableSince, now - reachableSince > Self.certainty {
      (silence, regularity) = (.zero, Self.leastRegularity)
    } else if reachableSince != nil, wasRegular {
      // A report was late or lost, or the program came and went.
      regularity = min(regularity * 2, Self.mostRegularity)
    } else if let lastRefusal {
      silence = max(silence, now - lastRefusal)
    }
    (lastRefusal, reachableSince, isRefused) = (now, nil, true)
  }

  /// Returns `true` if nothing was refused of late.
  func isSilent(at now: Instant) -> Bool {
    lastRefusal.map { now - $0 > Self.leastSilence } ?? true
  }

  /// Notes that a frame has left, refused or not. Returns `true` if that shows that a program listens again.
  package mutating func noteSent(at now: Instant) -> Bool {
    guard isRefused, let lastRefusal else { return false }
    if isFrameRefused {
      isFrameRefused = false
      refusedFrames += 1
      return false
    }
    wasRegular = refusedFrames >= regularity
    refusedFrames = 0
    guard wasRegular || now - lastRefusal > max(Self.leastSilence, silence + silence) else { return false }
    (reachableSince, isRefused) = (now, false)
    return true
  }
}
