import Media

/// What a receiver counts of one source: sequence numbers, loss and jitter of RFC 3550 appendices A.1, A.3 and A.8.
public struct ReceptionStatistics: Sendable {
  /// What a packet's sequence number says.
  enum Verdict: Hashable {
    /// It belongs to the stream.
    case accepted
    /// The sender started anew, and this is the second packet of it: everything before is forgotten.
    case restarted
    /// A number far from all others, perhaps the first of a sender that started anew.
    case rejected
  }

  /// How far ahead a sequence number may be without being taken for a new start.
  static let maximumDropout: UInt16 = 3000
  /// Packets received, late and repeated ones included.
  public private(set) var received: UInt64 = 0
  /// The highest sequence number, its wraps in the upper 16 bits.
  public var highestSequenceNumber: UInt32 { cycles &+ UInt32(maximum) }
  /// Packets that the sequence numbers say were sent.
  public var expected: UInt64 { UInt64(highestSequenceNumber &- UInt32(base)) + 1 }
  /// Packets lost; negative where duplicates outnumber them.
  public var lost: Int64 { Int64(expected) - Int64(received) }
  /// Mean deviation of the packets' spacing, in ticks of the RTP clock.
  public var jitter: UInt32 { UInt32(clamping: scaledJitter >> 4) }

  /// How far behind: 100 in the RFC, more where old packets are sent again under their own numbers.
  private let maximumMisorder: UInt16
  private var base: UInt16
  private var maximum: UInt16
  private var cycles: UInt32 = 0
  /// What would be the second packet of a sender that started anew.
  private var suspected: UInt16?
  private var expectedPrior: UInt64 = 0
  private var receivedPrior: UInt64 = 0
  private var transit: UInt32?
  /// Sixteen times the jitter, appendix A.8; wide enough for any input.
  private var scaledJitter: Int64 = 0

  /// Statistics of a source whose first packet has `sequenceNumber`; give that packet to ``update`` too.
  init(first sequenceNumber: UInt16, maximumMisorder: UInt16 = 100) {
    self.maximumMisorder = maximumMisorder
    base = sequenceNumber
    maximum = sequenceNumber
  }

  /// Counts a packet that came at `time`.
  mutating func update(_ header: RTPHeader, at time: MediaTime) -> Verdict {
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
      self = ReceptionStatistics(first: header.sequenceNumber, maximumMisorder: maximumMisorder)
      verdict = .restarted
    }
    received &+= 1
    measure(header.timestamp, at: time)
    return verdict
  }

  private mutating func measure(_ timestamp: UInt32, at time: MediaTime) {
    let arrival = UInt32(truncatingIfNeeded: time.ticks(rate: RTPStream.clockRate))
    let transit = arrival &- timestamp
    defer { self.transit = transit }
    guard let before = self.transit else { return }
    let difference = Int64(Int32(bitPattern: transit &- before)).magnitude
    scaledJitter += Int64(difference) - (scaledJitter + 8) >> 4
  }

  /// The block for a report about `ssrc`; begins the interval of the next block's fraction.
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
