public import Platform

/// Grants viewers' requests for a key frame, PLI and FIR together, at most once per interval.
///
/// One limiter serves all viewers of a stream, because one key frame serves them all. A request within the interval
/// is kept. It is granted at the end of the interval unless a key frame was encoded meanwhile. The program's own key
/// frames are neither limited nor counted.
public struct KeyFrameRequestLimiter: Sendable {
  /// The shortest time between two granted requests.
  public let interval: Duration
  /// The number of requests.
  public private(set) var requests: UInt64 = 0
  /// The number of granted requests.
  public private(set) var granted: UInt64 = 0

  private var lastGranted: Instant?
  private var isPending = false

  /// Creates a limiter of one key frame per `interval`.
  public init(interval: Duration = .milliseconds(500)) {
    self.interval = interval
  }

  /// Records a viewer's request at `time`. Returns `true` if the encoder must make a key frame now.
  public mutating func request(at time: Instant) -> Bool {
    requests &+= 1
    isPending = true
    return poll(at: time)
  }

  /// Returns `true` if a kept request is to be granted at `time`.
  public mutating func poll(at time: Instant) -> Bool {
    guard isPending, isOpen(at: time) else { return false }
    isPending = false
    lastGranted = time
    granted &+= 1
    return true
  }

  /// Returns `true` if a request at `time` would be granted at once.
  public func isOpen(at time: Instant) -> Bool {
    time >= lastGranted.map { $0 + interval } ?? time
  }

  /// The time at which ``poll(at:)`` grants the kept request; `nil` if none is kept.
  public var deadline: Instant? {
    guard isPending else { return nil }
    return lastGranted.map { $0 + interval } ?? .zero
  }

  /// Records that a key frame was sent, whatever its cause. The key frame answers all requests kept so far.
  public mutating func keyFrameSent() {
    isPending = false
  }
}

/// A filter that tells a new Full Intra Request from a repeated one, RFC 5104 section 4.3.1.1.
///
/// A repetition has the same sequence number. The filter remembers four requesters and replaces the oldest first.
public struct FullIntraRequestFilter: Sendable {
  private var last: InlineArray<4, (sender: UInt32, sequenceNumber: UInt8)?> = .init(repeating: nil)
  private var oldest = 0

  /// Creates a filter without requesters.
  public init() {}

  /// Returns `true` unless the last request of `sender` had the same number.
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
