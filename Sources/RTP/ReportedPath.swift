public import Media

/// The way to one viewer as its reports show it, as far as retransmission goes by it.
public struct ReportedPath: Hashable, Sendable {
  /// The round trip, averaged over some reports; nil before the first that could be measured.
  public private(set) var roundTrip: MediaTime?
  /// The shortest round trip of late: what is longer is time in queues.
  public private(set) var shortestRoundTrip: MediaTime?
  /// The viewer's jitter (RFC 3550 section 6.4.1).
  public private(set) var jitter = MediaTime.zero
  /// The share of packets lost between the last two reports, 0…1.
  public private(set) var fractionLost = 0.0

  /// How much one measurement counts in the average (RFC 6298 section 2).
  private static let weight = 0.125
  /// By how much of the difference the shortest round trip follows a longer one: a route may change.
  private static let drift = 1.0 / 64
  /// Below this, packets do not overtake each other: a frame's own packets make so much jitter.
  private static let leastJitter = MediaTime(nanoseconds: 5_000_000)
  /// With a queue that grows, so much loss is the queue's.
  private static let queueLoss = 0.02
  /// So much loss is too much for the way, whatever the reason.
  private static let heavyLoss = 0.2
  /// A round trip that is longer by no more than this, or by half, shows no queue.
  private static let leastQueue = MediaTime(nanoseconds: 20_000_000)

  /// Nothing reported yet.
  public init() {}

  /// Takes what a report says, and the round trip where it could be measured.
  public mutating func take(roundTrip measured: MediaTime?, jitter: MediaTime, fractionLost: Double) {
    self.jitter = jitter
    self.fractionLost = fractionLost
    guard let measured else { return }
    if let average = roundTrip, let shortest = shortestRoundTrip {
      roundTrip = MediaTime(seconds: average.seconds + (measured - average).seconds * Self.weight)
      let drifted = shortest.seconds + (measured - shortest).seconds * Self.drift
      shortestRoundTrip = min(measured, MediaTime(seconds: drifted))
    } else {
      (roundTrip, shortestRoundTrip) = (measured, measured)
    }
  }

  /// How long a packet and the answer to it may be on their way: the round trip, and four times the jitter, as TCP waits
  /// (RFC 6298 section 2).
  public var answerTime: MediaTime { (roundTrip ?? .zero) + MediaTime(nanoseconds: 4 * jitter.nanoseconds) }

  /// How old a packet is at least when a NACK of it means that it is lost: before that, others have overtaken it, and it is
  /// still on its way. Zero where packets keep their order.
  public var overtakingTime: MediaTime {
    guard jitter >= Self.leastJitter, roundTrip != nil else { return .zero }
    return answerTime
  }

  /// Whether packets are lost because there are too many of them, so that each one more costs another: there is loss and
  /// the round trip has grown by a queue, or a fifth of all is lost.
  public var isCongested: Bool {
    guard fractionLost < Self.heavyLoss else { return true }
    guard fractionLost >= Self.queueLoss, let roundTrip, let shortest = shortestRoundTrip else { return false }
    let half = MediaTime(nanoseconds: shortest.nanoseconds / 2)
    return roundTrip > shortest + max(Self.leastQueue, half) + jitter + jitter
  }
}
