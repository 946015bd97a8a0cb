public import Media

/// When the next regular RTCP packet is due: RFC 3550 sections 6.2 and 6.3, appendix A.7.
///
/// All members of a session share 5 % of its bandwidth. The interval is drawn at random between half and one and a
/// half of what that gives, so that members do not fall into step, and is looked at again when it has passed
/// (timer reconsideration). One value is one participant in one session; a unicast session has two members.
public struct RTCPSchedule: Sendable {
  /// The shortest interval.
  public enum Minimum: Hashable, Sendable {
    /// 5 s, section 6.2.
    case standard
    /// 360 s divided by the session bandwidth in kilobits a second, section 6.2: 180 ms at 2 Mbit/s.
    case reduced
  }

  /// What of the session bandwidth is RTCP's.
  public static let bandwidthShare = 0.05
  /// What of that the senders share where they are few.
  public static let senderShare = 0.25
  /// e - 1.5: makes up for reconsideration, which settles below the intended bandwidth (section 6.3.1).
  private static let compensation = 2.718281828459045 - 1.5

  /// Bits a second of the session, IP and UDP headers included.
  public var sessionBitsPerSecond: Double
  /// Whether this participant sent RTP within the last two intervals.
  public var isSender: Bool
  /// How many of the members are senders.
  public var senders: Int
  /// How many members there are, this one included.
  public private(set) var members: Int
  /// The mean size of all RTCP datagrams sent and received, with IP and UDP headers.
  public private(set) var averageBytes: Double
  /// When the next packet may be sent, unless ``expire(at:using:)`` puts it off.
  public private(set) var deadline: MediaTime

  private let minimum: Minimum
  private let headerBytes: Double
  private var isInitial = true
  private var lastSent: MediaTime

  /// A schedule that begins at `time`.
  ///
  /// - Parameters:
  ///   - sessionBitsPerSecond: The session's bandwidth.
  ///   - isSender: Whether this participant sends RTP.
  ///   - members: Its participants.
  ///   - senders: How many of them send RTP.
  ///   - minimum: The shortest interval.
  ///   - firstBytes: What the first packet will probably have, without IP and UDP.
  ///   - headerBytes: What IP and UDP add: 28, or 48 over IPv6.
  ///   - time: Now.
  ///   - generator: Where the random part comes from.
  public init(
    sessionBitsPerSecond: Double, isSender: Bool, members: Int = 2, senders: Int = 1, minimum: Minimum = .reduced,
    firstBytes: Int = 80, headerBytes: Int = 28, at time: MediaTime, using generator: inout some RandomNumberGenerator
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
  public var deterministicInterval: MediaTime {
    var bytesPerSecond = sessionBitsPerSecond / 8 * Self.bandwidthShare
    var sharing = Double(members)
    if Double(senders) <= Double(members) * Self.senderShare {
      bytesPerSecond *= isSender ? Self.senderShare : 1 - Self.senderShare
      sharing = Double(isSender ? senders : members - senders)
    }
    let computed = averageBytes * max(sharing, 1) / bytesPerSecond
    return MediaTime(seconds: max(computed, minimumSeconds))
  }

  private var minimumSeconds: Double {
    let shortest =
      switch minimum {
      case .standard: 5.0
      case .reduced: 360_000 / sessionBitsPerSecond
      }
    // The first packet of a session may go after half of it.
    return isInitial ? shortest / 2 : shortest
  }

  private func interval(using generator: inout some RandomNumberGenerator) -> MediaTime {
    let factor = Double.random(in: 0.5..<1.5, using: &generator) / Self.compensation
    return MediaTime(seconds: deterministicInterval.seconds * factor)
  }

  /// Whether a packet is to be sent at `time`: false before the deadline, and where the members or the bandwidth
  /// changed so that it is put off (section 6.3.6). After true, call ``sent(bytes:at:using:)``.
  public mutating func expire(at time: MediaTime, using generator: inout some RandomNumberGenerator) -> Bool {
    guard time >= deadline else { return false }
    let again = lastSent + interval(using: &generator)
    if again <= time { return true }
    deadline = again
    return false
  }

  /// A regular packet of `bytes` without IP and UDP was sent, and the next one is drawn.
  public mutating func sent(bytes: Int, at time: MediaTime, using generator: inout some RandomNumberGenerator) {
    average(bytes)
    isInitial = false
    lastSent = time
    deadline = time + interval(using: &generator)
  }

  /// A datagram of `bytes` was received, or feedback was sent out of turn: it counts in the mean size (6.3.3).
  public mutating func counted(bytes: Int) {
    average(bytes)
  }

  /// The session has `count` members now. Where they became fewer, the deadline moves nearer in proportion, so that
  /// those who stay are not silent for long (reverse reconsideration, section 6.3.4).
  public mutating func setMembers(_ count: Int, at time: MediaTime) {
    let count = max(count, 1)
    if count < members, deadline > time {
      let share = Double(count) / Double(members)
      deadline = time + MediaTime(seconds: (deadline - time).seconds * share)
      lastSent = time + MediaTime(seconds: (lastSent - time).seconds * share)
    }
    members = count
  }

  private mutating func average(_ bytes: Int) {
    averageBytes += (Double(bytes) + headerBytes - averageBytes) / 16
  }
}
