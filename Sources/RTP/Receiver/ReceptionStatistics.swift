public import Platform

/// A receiver's statistics of one source: sequence numbers, loss and jitter of RFC 3550 appendices A.1, A.3 and A.8.
public struct ReceptionStatistics: Sendable {
  /// The classification of a packet by its sequence number.
  enum Verdict: Hashable {
    /// The packet belongs to the stream.
    case accepted
    /// The sender restarted, and this is the second packet since. All earlier statistics are discarded.
    case restarted
    /// The number is far from all others, perhaps the first of a sender that restarted.
    case rejected
  }

  /// The distance ahead from which a sequence number counts as a restart.
  static let maximumDropout: UInt16 = 3000
  /// The number of packets received, late and repeated ones included.
  public private(set) var received: UInt64 = 0
  /// The extended highest sequence number received: the cycles are in the upper 16 bits.
  public var highestSequenceNumber: UInt32 { cycles &+ UInt32(maximum) }
  /// The number of packets sent, according to the sequence numbers.
  public var expected: UInt64 { UInt64(highestSequenceNumber &- UInt32(base)) + 1 }
  /// The number of packets lost; negative if duplicates outnumber losses.
  public var lost: Int64 { Int64(expected) - Int64(received) }
  /// The interarrival jitter, a mean deviation in ticks of the RTP clock.
  public var jitter: UInt32 { UInt32(clamping: scaledJitter >> 4) }

  /// The interarrival jitter as a time.
  public var jitterTime: Duration { Duration(nanoseconds: Int64(jitter) * 1_000_000_000 / clockRate) }

  /// The maximum distance behind: 100 in the RFC, more if old packets are sent again under their own numbers.
  private let maximumMisorder: UInt16
  /// The RTP clock rate of the stream in ticks per second.
  public let clockRate: Int64
  private var base: UInt16
  private var maximum: UInt16
  private var cycles: UInt32 = 0
  /// The expected second packet of a sender that may have restarted.
  private var suspected: UInt16?
  private var expectedPrior: UInt64 = 0
  private var receivedPrior: UInt64 = 0
  private var transit: UInt32?
  /// Sixteen times the jitter, appendix A.8; wide enough for any input.
  private var scaledJitter: Int64 = 0

  /// Creates the statistics of a source whose first packet has `sequenceNumber`. Pass that packet to ``update`` too.
  init(
    first sequenceNumber: UInt16, maximumMisorder: UInt16 = 100, clockRate: Int64 = RTPStream.videoClockRate
  ) {
    self.maximumMisorder = maximumMisorder
    self.clockRate = clockRate
    base = sequenceNumber
    maximum = sequenceNumber
  }

  /// Counts a packet that came at `time`.
  mutating func update(_ header: RTPHeader, at time: Instant) -> Verdict {
    let ahead = header.sequenceNumber &- maximum
    var verdict = Verdict.accepted
    if ahead < Self.maximumDropout {
      if header.sequenceNumber < maximum { cycles &+= 1 << 16 }
      maximum = header.sequenceNumber
    } else if ahead <= UInt16.max - maximumMisorder + 1 {
      guard header.sequenceNumber == suspected else {
        suspected = header.sequenceNumber &+ 1
        return .rejected
      }
      self = ReceptionStatistics(
        first: header.sequenceNumber, maximumMisorder: maximumMisorder, clockRate: clockRate)
      verdict = .restarted
    }
    received &+= 1
    measure(header.timestamp, at: time)
    return verdict
  }

  private mutating func measure(_ timestamp: UInt32, at time: Instant) {
    let arrival = UInt32(truncatingIfNeeded: time.ticks(rate: clockRate))
    let transit = arrival &- timestamp
    defer { self.transit = transit }
    guard let before = self.transit else { return }
    let difference = Int64(Int32(bitPattern: transit &- before)).magnitude
    scaledJitter += Int64(difference) - (scaledJitter + 8) >> 4
  }

  /// Returns the block for a report about `ssrc`, and begins the interval of the next block's fraction.
  mutating func reportBlock(
    of ssrc: UInt32, lastSenderReport: UInt32, delaySinceLastSenderReport: UInt32
  ) -> ReportBlock {
    let expectedInterval = Int64(expected) - Int64(expectedPrior)
    let lostInterval = expectedInterval - (Int64(received) - Int64(receivedPrior))
    expectedPrior = expected
    receivedPrior = received
    let fraction = expectedInterval <= 0 || lostInterval <= 0 ? 0 : lostInterval << 8 / expectedInterval
    return ReportBlock(
      ssrc: ssrc, fractionLost: UInt8(clamping: fraction), cumulativeLost: Int32(clamping: lost),
      highestSequenceNumber: highestSequenceNumber, jitter: jitter, lastSenderReport: lastSenderReport,
      delaySinceLastSenderReport: delaySinceLastSenderReport)
  }
}
