public import Platform

/// The last report of one viewer on our stream, and the round-trip time to the viewer: RFC 3550 section 6.4.
public struct ReportedReception: Hashable, Sendable {
  /// The number of report blocks.
  public private(set) var reports: UInt64 = 0
  /// The time of the last report block; `nil` before the first.
  public private(set) var lastReport: Instant?
  /// The fraction of packets lost between the last two reports, 0…1.
  public private(set) var fractionLost = 0.0
  /// The number of packets lost since the beginning; negative if duplicates outnumber losses.
  public private(set) var cumulativeLost: Int32 = 0
  /// The viewer's jitter, in ticks of the RTP clock.
  public private(set) var jitterTicks: UInt32 = 0
  /// The extended highest sequence number that the viewer received: the cycles are in the upper 16 bits.
  public private(set) var highestSequenceNumber: UInt32 = 0
  /// The last measured round-trip time; `nil` before the viewer's first report on a sender report.
  public private(set) var roundTrip: Duration?

  /// The RTP clock rate of our stream in ticks per second.
  public let clockRate: Int64

  /// Creates a value without reports on a stream of that clock rate.
  public init(clockRate: Int64 = RTPStream.videoClockRate) {
    self.clockRate = clockRate
  }

  /// The viewer's jitter as a time.
  public var jitter: Duration {
    Duration(nanoseconds: Int64(jitterTicks) * 1_000_000_000 / clockRate)
  }

  /// Adds the report of the same viewer on another stream: the sum of the losses, and the worse of the other figures.
  package mutating func add(_ other: ReportedReception) {
    reports &+= other.reports
    if let time = other.lastReport { lastReport = max(lastReport ?? time, time) }
    fractionLost = max(fractionLost, other.fractionLost)
    cumulativeLost &+= other.cumulativeLost
    if other.jitter > jitter {
      jitterTicks = UInt32(clamping: other.jitter.nanoseconds * clockRate / 1_000_000_000)
    }
    if let time = other.roundTrip { roundTrip = max(roundTrip ?? time, time) }
  }

  /// Takes a report block about our stream.
  ///
  /// - Parameters:
  ///   - block: The block. The caller leaves out blocks about other sources.
  ///   - time: The arrival time.
  ///   - ntp: The arrival time on the clock of our sender reports.
  public mutating func take(_ block: ReportBlock, at time: Instant, ntp: NTPTimestamp) {
    reports &+= 1
    lastReport = time
    fractionLost = Double(block.fractionLost) / 256
    cumulativeLost = block.cumulativeLost
    jitterTicks = block.jitter
    highestSequenceNumber = block.highestSequenceNumber
    guard block.lastSenderReport != 0 else { return }
    // A - LSR - DLSR. More than half the range is negative: a clock was set, or the peer is wrong.
    let ticks = ntp.compact &- block.lastSenderReport &- block.delaySinceLastSenderReport
    if ticks < 0x8000_0000 { roundTrip = NTPTimestamp.span(compact: ticks) }
  }
}
