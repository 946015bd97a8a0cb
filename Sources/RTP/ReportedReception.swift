public import Media

/// What one viewer last reported of our stream, and the round trip to it: RFC 3550 section 6.4.
public struct ReportedReception: Hashable, Sendable {
  /// Report blocks taken.
  public private(set) var reports: UInt64 = 0
  /// When the last one came; nil before the first.
  public private(set) var lastReport: MediaTime?
  /// The share of packets lost between the last two reports, 0…1.
  public private(set) var fractionLost = 0.0
  /// Packets lost since the beginning; negative where duplicates outnumber them.
  public private(set) var cumulativeLost: Int32 = 0
  /// The viewer's jitter, in ticks of the RTP clock.
  public private(set) var jitterTicks: UInt32 = 0
  /// The highest sequence number that it got, wraps in the upper 16 bits.
  public private(set) var highestSequenceNumber: UInt32 = 0
  /// The last round trip that could be measured; nil before the viewer's first report on a sender report.
  public private(set) var roundTrip: MediaTime?

  /// Nothing reported yet.
  public init() {}

  /// The viewer's jitter as a time.
  public var jitter: MediaTime {
    MediaTime(nanoseconds: Int64(jitterTicks) * 1_000_000_000 / RTPStream.clockRate)
  }

  /// Takes a report block about our stream.
  ///
  /// - Parameters:
  ///   - block: The block; one about another source is the caller's to leave out.
  ///   - time: When it came.
  ///   - ntp: The same on the clock that our sender reports carry.
  public mutating func take(_ block: ReportBlock, at time: MediaTime, ntp: NTPTimestamp) {
    reports &+= 1
    lastReport = time
    fractionLost = Double(block.fractionLost) / 256
    cumulativeLost = block.cumulativeLost
    jitterTicks = block.jitter
    highestSequenceNumber = block.highestSequenceNumber
    guard block.lastSenderReport != 0 else { return }
    // A - LSR - DLSR. More than half the range is negative: a clock was set, or the peer errs.
    let ticks = ntp.compact &- block.lastSenderReport &- block.delaySinceLastSenderReport
    if ticks < 0x8000_0000 { roundTrip = NTPTimestamp.span(compact: ticks) }
  }
}
