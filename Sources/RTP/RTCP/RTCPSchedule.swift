public import Platform

/// The schedule of regular RTCP packets: RFC 3550 sections 6.2 and 6.3, appendix A.7.
///
/// All members of a session share 5 % of its bandwidth. The interval is random between a half and one and a half of
/// the time that follows from this share, so that members do not synchronize. When the interval has passed, the
/// schedule computes it again (timer reconsideration). One schedule represents one participant in one session; a
/// unicast session has two members.
public struct RTCPSchedule: Sendable {
  /// The minimum interval.
  public enum Minimum: Hashable, Sendable {
    /// 5 s, section 6.2.
    case standard
    /// 360 s divided by the session bandwidth in kilobits a second, section 6.2: 180 ms at 2 Mbit/s.
    case reduced
  }

  /// The share of the session bandwidth that belongs to RTCP.
  public static let bandwidthShare = 0.05
  /// The share of the RTCP bandwidth that belongs to the senders if they are few.
  public static let senderShare = 0.25
  /// e - 1.5: compensates for reconsideration, which converges below the intended bandwidth (section 6.3.1).
  private static let compensation = 2.718281828459045 - 1.5

  /// The session bandwidth in bits per second, IP and UDP headers included.
  public var sessionBitsPerSecond: Double
  /// `true` if this participant sent RTP within the last two intervals.
  public var isSender: Bool
  /// The number of members that are senders.
  public var senders: Int
  /// The number of members, this one included.
  public private(set) var members: Int
  /// The mean size in bytes of all RTCP datagrams sent and received, with IP and UDP headers.
  public private(set) var averageBytes: Double
  /// The time at which the next packet may be sent, unless ``expire(at:using:)`` postpones it.
  public private(set) var deadline: Instant

  private let minimum: Minimum
  private let headerBytes: Double
  private var isInitial = true
  private var lastSent: Instant

  /// Creates a schedule that begins at `time`.
  ///
  /// - Parameters:
  ///   - sessionBitsPerSecond: The session bandwidth.
  ///   - isSender: `true` if this participant sends RTP.
  ///   - members: The number of members.
  ///   - senders: The number of members that send RTP.
  ///   - minimum: The minimum interval.
  ///   - firstBytes: The probable size of the first packet in bytes, without IP and UDP headers.
  ///   - headerBytes: The size of the IP and UDP headers in bytes: 28, or 48 for IPv6.
  ///   - time: The current time.
  ///   - generator: The source of the random part.
  public init(
    sessionBitsPerSecond: Double, isSender: Bool, members: Int = 2, senders: Int = 1, minimum: Minimum = .reduced,
    firstBytes: Int = 80, headerBytes: Int = 28, at time: Instant, using generator: inout some RandomNumberGenerator
  ) {
    self.sessionBitsPerSecond = max(sessionBitsPerSecond, 1000)
    self.isSender = isSender
    self.members = max(members, 1)
    self.senders = senders
    self.minimum = minimum
    self.headerBytes = Double(headerBytes)
    averageBytes = Double(firstBytes + headerBytes)
    lastSent = time
    deadline = time
    deadline = time + interval(using: &generator)
  }

  /// The interval without its random part: T_d of section 6.3.1.
  public var deterministicInterval: Duration {
    var bytesPerSecond = sessionBitsPerSecond / 8 * Self.bandwidthShare
    var sharing = Double(members)
    if Double(senders) <= Double(members) * Self.senderShare {
      bytesPerSecond *= isSender ? Self.senderShare : 1 - Self.senderShare
      sharing = Double(isSender ? senders : members - senders)
    }
    let computed = averageBytes * max(sharing, 1) / bytesPerSecond
    return Duration(seconds: max(computed, minimumSeconds))
  }

  private var minimumSeconds: Double {
    let shortest =
      switch minimum {
      case .standard: 5.0
      case .reduced: 360_000 / sessionBitsPerSecond
      }
    // The first packet of a session may be sent after half the minimum.
    return isInitial ? shortest / 2 : shortest
  }

  private func interval(using generator: inout some RandomNumberGenerator) -> Duration {
    let factor = Double.random(in: 0.5..<1.5, using: &generator) / Self.compensation
    return Duration(seconds: deterministicInterval.seconds * factor)
  }

  /// Returns `true` if a packet is to be sent at `time`; then call ``sent(bytes:at:using:)``. Returns `false` before
  /// the deadline, and if a change of the members or the bandwidth postpones it (section 6.3.6).
  public mutating func expire(at time: Instant, using generator: inout some RandomNumberGenerator) -> Bool {
    guard time >= deadline else { return false }
    let again = lastSent + interval(using: &generator)
    if again <= time { return true }
    deadline = again
    return false
  }

  /// Records that a regular packet of `bytes`, without IP and UDP headers, was sent, and draws the next interval.
  public mutating func sent(bytes: Int, at time: Instant, using generator: inout some RandomNumberGenerator) {
    average(bytes)
    isInitial = false
    lastSent = time
    deadline = time + interval(using: &generator)
  }

  /// Records that a datagram of `bytes` was received, or that feedback was sent early. Both count in the mean size
  /// (6.3.3).
  public mutating func counted(bytes: Int) {
    average(bytes)
  }

  /// Sets the number of members to `count`. If the number falls, the deadline moves nearer in proportion, so that the
  /// remaining members are not silent for long (reverse reconsideration, section 6.3.4).
  public mutating func setMembers(_ count: Int, at time: Instant) {
    let count = max(count, 1)
    if count < members, deadline > time {
      let share = Double(count) / Double(members)
      deadline = time + Duration(seconds: (deadline - time).seconds * share)
      lastSent = time + Duration(seconds: (lastSent - time).seconds * share)
    }
    members = count
  }

  private mutating func average(_ bytes: Int) {
    averageBytes += (Double(bytes) + headerBytes - averageBytes) / 16
  }
}
