public import Media

/// What one viewer's NACKs may cost: bytes a second, and how often and how soon the same packet goes out again. A packet that
/// may still be on its way is not sent again, nor any where more packets would mean more loss (``ReportedPath``).
///
/// A fixed table remembers the packets retransmitted last. Two packets that fall on the same place in it make each
/// other forgotten, which only loosens the limit for one packet; the limit of bytes holds always.
public struct RetransmissionLimiter: Sendable {
  /// What one viewer may cost.
  public struct Limits: Hashable, Sendable {
    /// Bytes a second, on average.
    public var bytesPerSecond: Int
    /// Bytes that may go out at once after a pause.
    public var burstBytes: Int
    /// How often the same packet is retransmitted.
    public var triesPerPacket: Int
    /// How soon the same packet may follow itself at least: below ``ReportedPath/answerTime``, a NACK repeated speaks of the
    /// same loss.
    public var interval: MediaTime

    /// 2 Mbit/s of repair, half a second of it at once, each packet three times at most.
    public init(
      bytesPerSecond: Int = 250_000, burstBytes: Int = 125_000, triesPerPacket: Int = 3,
      interval: MediaTime = MediaTime(nanoseconds: 10_000_000)
    ) {
      self.bytesPerSecond = bytesPerSecond
      self.burstBytes = burstBytes
      self.triesPerPacket = triesPerPacket
      self.interval = interval
    }
  }

  private struct Entry {
    var sequenceNumber: UInt16 = 0
    var tries: UInt16 = 0
    var last = MediaTime.zero
  }

  /// What the viewer may cost.
  public let limits: Limits
  /// Requests refused.
  public private(set) var refused: UInt64 = 0

  private var available: Double
  private var filled: MediaTime?
  private var recent: InlineArray<128, Entry> = .init(repeating: Entry())
  /// After this long, a sequence number is another packet's: they wrap.
  private static let memorySpan = MediaTime(nanoseconds: 1_000_000_000)

  /// A limiter with the whole burst to spend.
  public init(_ limits: Limits = Limits()) {
    self.limits = limits
    available = Double(limits.burstBytes)
  }

  /// Returns whether a packet may be retransmitted; counts it where it may.
  ///
  /// - Parameters:
  ///   - sequenceNumber: The packet's.
  ///   - bytes: How long the packet is.
  ///   - sent: When it was sent first.
  ///   - path: The way to the viewer.
  ///   - time: When it is asked for.
  public mutating func allows(
    _ sequenceNumber: UInt16, bytes: Int, sent: MediaTime, path: ReportedPath, at time: MediaTime
  ) -> Bool {
    if let filled, time > filled {
      let more = (time - filled).seconds * Double(limits.bytesPerSecond)
      available = min(Double(limits.burstBytes), available + more)
    }
    filled = max(filled ?? time, time)
    let index = Int(sequenceNumber) % recent.count
    var entry = recent[index]
    let isSame = entry.tries > 0 && entry.sequenceNumber == sequenceNumber && time - entry.last < Self.memorySpan
    if !isSame { entry = Entry(sequenceNumber: sequenceNumber) }
    guard !path.isCongested, Double(bytes) <= available, Int(entry.tries) < limits.triesPerPacket,
      time - sent >= path.overtakingTime, !isSame || time - entry.last >= max(limits.interval, path.answerTime)
    else {
      refused &+= 1
      return false
    }
    available -= Double(bytes)
    entry.tries += 1
    entry.last = time
    recent[index] = entry
    return true
  }
}
