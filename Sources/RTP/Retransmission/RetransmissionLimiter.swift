public import Platform

/// A limiter of one viewer's retransmissions: of their bytes per second, and of the number and the spacing of one
/// packet's retransmissions.
///
/// The limiter refuses a packet that may still be in transit, unless the receiver itself waits for it
/// (``Limits/receiverWaits``). It refuses all packets while more packets would cause
/// more loss (``ReportedPath``).
///
/// A fixed table remembers the packets retransmitted last. Two packets with the same place in the table replace each
/// other, which only loosens the limit for one packet. The limit of bytes always holds.
public struct RetransmissionLimiter: Sendable {
  /// The limits of one viewer.
  public struct Limits: Hashable, Sendable {
    /// The mean number of bytes per second.
    public var bytesPerSecond: Int
    /// The maximum number of bytes sent at once after a pause.
    public var burstBytes: Int
    /// The maximum number of retransmissions of one packet.
    public var triesPerPacket: Int
    /// The minimum time between two retransmissions of one packet. Within ``ReportedPath/answerTime``, a repeated
    /// NACK refers to the same loss.
    public var interval: Duration
    /// `true` if the receiver itself waits before a NACK until packets can no longer overtake each other, and repeats a
    /// NACK only after its round-trip time, as browsers do. Then the jitter delays no retransmission.
    public var receiverWaits: Bool

    /// Creates limits of 2 Mbit/s of repair, half a second of it at once, and three retransmissions of each packet.
    public init(
      bytesPerSecond: Int = 250_000, burstBytes: Int = 125_000, triesPerPacket: Int = 3,
      interval: Duration = .milliseconds(10), receiverWaits: Bool = false
    ) {
      self.bytesPerSecond = bytesPerSecond
      self.burstBytes = burstBytes
      self.triesPerPacket = triesPerPacket
      self.interval = interval
      self.receiverWaits = receiverWaits
    }

    /// The limits of a browser, which requests a packet up to ten times, each time after its own round-trip time.
    public static let browser = Limits(triesPerPacket: 10, receiverWaits: true)
  }

  private struct Entry {
    var sequenceNumber: UInt16 = 0
    var tries: UInt16 = 0
    var last = Instant.zero
  }

  /// The viewer's limits.
  public let limits: Limits
  /// The number of refused requests.
  public private(set) var refused: UInt64 = 0

  private var available: Double
  private var filled: Instant?
  private var recent: InlineArray<128, Entry> = .init(repeating: Entry())
  /// The time after which a sequence number belongs to another packet, because the numbers wrap.
  private static let memorySpan = Duration.seconds(1)

  /// Creates a limiter with the whole burst available.
  public init(_ limits: Limits = Limits()) {
    self.limits = limits
    available = Double(limits.burstBytes)
  }

  /// Returns `true` if a packet may be retransmitted, and then counts it.
  ///
  /// - Parameters:
  ///   - sequenceNumber: The packet's sequence number.
  ///   - bytes: The packet's length in bytes.
  ///   - sent: The time at which the packet was first sent.
  ///   - path: The network path to the viewer.
  ///   - time: The time of the request.
  public mutating func allows(
    _ sequenceNumber: UInt16, bytes: Int, sent: Instant, path: ReportedPath, at time: Instant
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
    // No answer arrives before the shortest round trip, whatever the receiver takes for its own.
    let pause = limits.receiverWaits ? path.shortestRoundTrip ?? .zero : path.answerTime
    guard !path.isCongested, Double(bytes) <= available, Int(entry.tries) < limits.triesPerPacket,
      limits.receiverWaits || time - sent >= path.overtakingTime,
      !isSame || time - entry.last >= max(limits.interval, pause)
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
