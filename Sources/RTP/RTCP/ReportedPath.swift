public import Platform

/// The network path to one viewer according to the viewer's reports, as far as retransmission depends on it.
public struct ReportedPath: Hashable, Sendable {
  /// The round-trip time, averaged over several reports; `nil` before the first measurement.
  public private(set) var roundTrip: Duration?
  /// The shortest recent round-trip time. Any longer time is spent in queues.
  public private(set) var shortestRoundTrip: Duration?
  /// The viewer's jitter (RFC 3550 section 6.4.1).
  public private(set) var jitter = Duration.zero
  /// The fraction of packets lost between the last two reports, 0…1.
  public private(set) var fractionLost = 0.0

  /// The weight of one measurement in the average (RFC 6298 section 2).
  private static let weight = 0.125
  /// The fraction of the difference by which the shortest round trip follows a longer one, because a route may
  /// change.
  private static let drift = 1.0 / 64
  /// The jitter below which packets do not overtake each other: the packets of one frame alone cause this much.
  private static let leastJitter = Duration.milliseconds(5)
  /// The loss above which a growing queue is the cause.
  private static let queueLoss = 0.02
  /// The loss that is too high for the path, whatever the cause.
  private static let heavyLoss = 0.2
  /// The increase of the round trip that shows no queue; an increase of up to a half shows none either.
  private static let leastQueue = Duration.milliseconds(20)

  /// Creates a path without reports.
  public init() {}

  /// Takes the values of a report, and the round-trip time if one was measured.
  public mutating func take(roundTrip measured: Duration?, jitter: Duration, fractionLost: Double) {
    self.jitter = jitter
    self.fractionLost = fractionLost
    guard let measured else { return }
    if let average = roundTrip, let shortest = shortestRoundTrip {
      roundTrip = Duration(seconds: average.seconds + (measured - average).seconds * Self.weight)
      let drifted = shortest.seconds + (measured - shortest).seconds * Self.drift
      shortestRoundTrip = min(measured, Duration(seconds: drifted))
    } else {
      (roundTrip, shortestRoundTrip) = (measured, measured)
    }
  }

  /// The maximum time of a packet and its answer in transit: the round trip and four times the jitter, like TCP's
  /// retransmission timeout (RFC 6298 section 2).
  public var answerTime: Duration { (roundTrip ?? .zero) + Duration(nanoseconds: 4 * jitter.nanoseconds) }

  /// The minimum age of a packet at which a NACK for it means a loss. Before, other packets may have overtaken it,
  /// and it is still in transit. Zero if packets keep their order.
  public var overtakingTime: Duration {
    guard jitter >= Self.leastJitter, roundTrip != nil else { return .zero }
    return answerTime
  }

  /// `true` if congestion causes the loss, so that each further packet costs another. There is loss and a queue has
  /// lengthened the round trip, or a fifth of all packets is lost.
  public var isCongested: Bool {
    guard fractionLost < Self.heavyLoss else { return true }
    guard fractionLost >= Self.queueLoss, let roundTrip, let shortest = shortestRoundTrip else { return false }
    let half = Duration(nanoseconds: shortest.nanoseconds / 2)
    return roundTrip > shortest + max(Self.leastQueue, half) + jitter + jitter
  }
}
