package import Platform

/// A judgement on whether a program listens at a viewer's port, from ICMP's refusals of the packets sent to it
/// (`ECONNREFUSED`).
///
/// On this host each packet is refused, so the first frame without a refusal shows that a program listens. Over a
/// network a host reports that seldom (Linux: once a second, `icmp_ratelimit`, after six at once). Then silence means
/// something only once it is longer than the usual time between refusals.
///
/// A time in which a program listened must not count as such a time, or each listener would be seen later than the one
/// before. So a time in which a listener seemed to be there counts only until a shorter one follows, and the longest of
/// the last times never counts.
///
/// Two ports of a host, such as those of pictures and of sound, share its refusals, so that those of either come at
/// random. There a guess that is refuted soon lengthens the silence that is needed, by up to twice.
package struct PortReachability {
  /// `true` if packets were refused, and nothing has shown since then that a program listens.
  package private(set) var isRefused = false
  private var lastRefusal: Instant?
  private var intervals = RefusalIntervals()
  /// The wrong guesses that still lengthen the silence that is needed, 0…2: where two ports of a host share its
  /// refusals, those of one come at random.
  private var wrongGuesses: Int64 = 0
  /// The number of refusals that came about as soon as they can, since ``wrongGuesses`` last fell.
  private var soonRefusals = 0
  /// The full length of the last of ``intervals``, if a listener seemed to be there in it.
  private var doubtfulInterval: Duration?
  /// `true` if a frame has left without a refusal since the last refusal.
  private var hasPassed = false
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
  /// The most that counts of a time between refusals, so that no listener waits for long.
  private static let longestInterval = Duration.seconds(3)
  /// The number of times between refusals after which a guess that is soon refuted is none of a beginner's.
  private static let learned = 4
  /// The number of refusals in a row, each as soon as it can come, that show that the port shares them with no other.
  private static let unshared = 10
  /// The time of listening that is certain. A refusal after it shows that the listener has gone, and not that the
  /// guess was wrong.
  static let certainty = Duration(seconds: 10)

  /// Notes that a packet was refused.
  package mutating func noteRefusal(at now: Instant) {
    isFrameRefused = true
    if let lastRefusal { noteInterval(now - lastRefusal, at: now) }
    (lastRefusal, reachableSince, isRefused, hasPassed) = (now, nil, true, false)
  }

  private mutating func noteInterval(_ new: Duration, at now: Instant) {
    if let doubtfulInterval, new + new < doubtfulInterval {
      // The host refuses more often: somebody listened in the time before.
      intervals.removeLast()
    }
    doubtfulInterval = nil
    if let reachableSince, !wasRegular, intervals.count >= Self.learned {
      // Hardly any receiver leaves so soon.
      let isWrong = now - reachableSince < Self.longestInterval
      wrongGuesses = isWrong ? min(wrongGuesses + 1, 2) : max(wrongGuesses - 1, 0)
    }
    noteSharing(new)
    if let reachableSince, now - reachableSince > Self.certainty {
      regularity = Self.leastRegularity
    } else if reachableSince != nil, wasRegular {
      // A report was late or lost, or the program came and went.
      regularity = min(regularity * 2, Self.mostRegularity)
    } else if hasPassed {
      intervals.append(min(new, Self.longestInterval))
      if reachableSince != nil { doubtfulInterval = new }
    }
  }

  /// Forgets wrong guesses where refusals come regularly, so that the receivers of a port that shares none are seen soon.
  private mutating func noteSharing(_ new: Duration) {
    if new.nanoseconds <= intervals.shortest.nanoseconds / 2 * 3 {
      soonRefusals += 1
      if soonRefusals >= Self.unshared { (wrongGuesses, soonRefusals) = (0, 0) }
    } else if reachableSince == nil, new <= Self.longestInterval {
      // A longer one is rather that of a receiver which left before it was seen.
      soonRefusals = 0
    }
  }

  /// The silence that means that a program listens. One refusal that is lost on its way does not.
  private var neededSilence: Duration {
    max(Self.leastSilence, Duration(nanoseconds: intervals.usual.nanoseconds * 5 * (2 + wrongGuesses) / 4))
  }

  /// Returns `true` if nothing was refused for longer than usual, so that somebody probably listens.
  func isSilent(at now: Instant) -> Bool {
    lastRefusal.map { now - $0 > max(Self.leastSilence, intervals.usual) } ?? true
  }

  /// Notes that a frame has left, refused or not. Returns `true` if that shows that a program listens again.
  package mutating func noteSent(at now: Instant) -> Bool {
    guard isRefused, let lastRefusal else { return false }
    if isFrameRefused {
      isFrameRefused = false
      refusedFrames += 1
      return false
    }
    hasPassed = true
    wasRegular = refusedFrames >= regularity
    refusedFrames = 0
    guard wasRegular || now - lastRefusal > neededSilence else { return false }
    (reachableSince, isRefused) = (now, false)
    return true
  }
}

/// The last times between two refusals of a port, with unrefused frames between them.
private struct RefusalIntervals {
  private var values = InlineArray<8, Duration>(repeating: .zero)
  /// The number of times, 0…8.
  private(set) var count = 0

  /// Adds the latest time; the oldest one makes room.
  mutating func append(_ time: Duration) {
    if count == values.count {
      for index in 1..<count { values[index - 1] = values[index] }
      count -= 1
    }
    values[count] = time
    count += 1
  }

  /// Removes the latest time.
  mutating func removeLast() { count -= 1 }

  /// The shortest time; zero for none.
  var shortest: Duration {
    var shortest = count > 0 ? values[0] : .zero
    for index in 1..<max(count, 1) { shortest = min(shortest, values[index]) }
    return shortest
  }

  /// The second longest time, or the only one: the usual time while no program listens. Zero for none.
  var usual: Duration {
    var (longest, second) = (Duration.zero, Duration.zero)
    for index in 0..<count {
      let time = values[index]
      if time > longest { (longest, second) = (time, longest) } else if time > second { second = time }
    }
    return count == 1 ? longest : second
  }
}
