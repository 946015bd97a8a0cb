public import Media

/// Lets viewers' requests for a key frame through, PLI and FIR together, at most once an interval.
///
/// One value serves all viewers of a stream, because a key frame serves them all. A request within the interval is
/// kept, and granted at its end unless a key frame was encoded meanwhile. Key frames of the program's own are not
/// limited and not counted.
public struct KeyFrameRequestLimiter: Sendable {
  /// The shortest time between two that are granted.
  public let interval: MediaTime
  /// Requests made.
  public private(set) var requests: UInt64 = 0
  /// Requests granted.
  public private(set) var granted: UInt64 = 0

  private var lastGranted: MediaTime?
  private var isPending = false

  /// A limiter of one key frame in `interval`.
  public init(interval: MediaTime = MediaTime(nanoseconds: 500_000_000)) {
    self.interval = interval
  }

  /// A viewer asks at `time`; true where the encoder is to make a key frame now.
  public mutating func request(at time: MediaTime) -> Bool {
    requests &+= 1
    isPending = true
    return poll(at: time)
  }

  /// Whether a request that was kept is to be granted at `time`.
  public mutating func poll(at time: MediaTime) -> Bool {
    guard isPending, isOpen(at: time) else { return false }
    isPending = false
    lastGranted = time
    granted &+= 1
    return true
  }

  /// Whether a request at `time` would be granted at once.
  public func isOpen(at time: MediaTime) -> Bool {
    time >= lastGranted.map { $0 + interval } ?? time
  }

  /// When ``poll(at:)`` will grant; nil where nothing is kept.
  public var deadline: MediaTime? {
    guard isPending else { return nil }
    return lastGranted.map { $0 + interval } ?? .zero
  }

  /// A key frame, whoever asked for it, went to the viewers: it answers the requests kept until now.
  public mutating func keyFrameSent() {
    isPending = false
  }
}

/// Tells a new Full Intra Request from one that is repeated, RFC 5104 section 4.3.1.1: a repetition has the same
/// sequence number. Four requesters are remembered, the oldest forgotten first.
public struct FullIntraRequestFilter: Sendable {
  private var last: InlineArray<4, (sender: UInt32, sequenceNumber: UInt8)?> = .init(repeating: nil)
  private var oldest = 0

  /// Nobody has asked yet.
  public init() {}

  /// Whether `sender` has not asked with this number just before.
  public mutating func isNew(_ sequenceNumber: UInt8, from sender: UInt32) -> Bool {
    for index in last.indices {
      guard let entry = last[index], entry.sender == sender else { continue }
      last[index] = (sender, sequenceNumber)
      return entry.sequenceNumber != sequenceNumber
    }
    last[oldest] = (sender, sequenceNumber)
    oldest = (oldest + 1) % last.count
    return true
  }
}
