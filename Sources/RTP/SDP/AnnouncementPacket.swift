public import Platform

/// A packet that announces a session, RFC 2974 section 6, without authentication, encryption and compression.
public struct AnnouncementPacket: Hashable, Sendable {
  /// The identity of an announcement: a change of the description changes the hash (section 6, "Message Identifier
  /// Hash").
  public struct Identifier: Hashable, Sendable {
    /// The sender's address: 4 or 16 bytes.
    public var origin: [UInt8]
    /// A hash of the payload.
    public var hash: UInt16

    /// Creates an identifier.
    public init(origin: [UInt8], hash: UInt16) {
      self.origin = origin
      self.hash = hash
    }
  }

  /// The identity of the announcement.
  public var identifier: Identifier
  /// `true` if the packet deletes the session.
  public var isDeletion: Bool

  /// The payload type after the header, with the zero at its end.
  static let payloadType = Array("application/sdp\0".utf8)
  /// The UDP port of SAP, RFC 2974 section 3.
  public static let port: UInt16 = 9875

  /// Returns the packet that announces or deletes the session of `description`.
  ///
  /// - Parameters:
  ///   - description: The session description (SDP).
  ///   - origin: The local address in network byte order: 4 or 16 bytes.
  ///   - isDeletion: `true` deletes the session.
  public static func bytes(announcing description: String, from origin: [UInt8], isDeletion: Bool = false) -> [UInt8] {
    let payload = Array(description.utf8)
    // Version 1; A for IPv6, T for a deletion.
    let flags: UInt8 = 0x20 | (origin.count == 16 ? 0x10 : 0) | (isDeletion ? 0x04 : 0)
    let hash = hash(of: payload)
    return [flags, 0, UInt8(hash >> 8), UInt8(hash & 0xff)] + origin + payloadType + payload
  }

  /// Returns a hash that distinguishes announcements by payload. It is never 0, because old senders use 0 for no
  /// hash.
  static func hash(of payload: [UInt8]) -> UInt16 {
    // FNV-1a, folded.
    var hash: UInt32 = 0x811c_9dc5
    for byte in payload { hash = (hash ^ UInt32(byte)) &* 0x0100_0193 }
    let folded = UInt16(truncatingIfNeeded: hash ^ hash >> 16)
    return folded == 0 ? 1 : folded
  }

  /// Parses the header of a packet, whatever it announces; `nil` for a packet of a version other than 0 and 1.
  public init?(parsing bytes: UnsafeRawBufferPointer) {
    guard bytes.count >= 8, bytes[0] >> 5 <= 1 else { return nil }
    let isIPv6 = bytes[0] & 0x10 != 0
    let length = isIPv6 ? 16 : 4
    guard bytes.count > 4 + length + Int(bytes[1]) * 4 else { return nil }
    identifier = Identifier(
      origin: Array(bytes[4..<4 + length]), hash: UInt16(bytes[2]) << 8 | UInt16(bytes[3]))
    isDeletion = bytes[0] & 0x04 != 0
  }

  /// Returns the address at which a session for `group` is announced (section 3); `nil` if `group` is no multicast
  /// group.
  ///
  /// For IPv4, it is the highest address of the administrative scope, otherwise that of the global scope. For IPv6,
  /// it is `FF0X::2:7FFE` of the group's own scope.
  public static func group(for group: ConnectionAddress) -> String? {
    guard group.isMulticast else { return nil }
    if group.family == .ip6 {
      let scope = group.description.dropFirst(3).prefix { $0 != ":" }
      // The digits after `ff` are the flags and the scope.
      guard group.description.utf8.count > 4, scope.utf8.count == 1 else { return nil }
      return "ff0\(scope)::2:7ffe"
    }
    let numbers = group.description.split(separator: ".").compactMap { UInt8($0) }
    guard numbers.count == 4 else { return nil }
    switch (numbers[0], numbers[1], numbers[2]) {
    case (224, 0, 0): return "224.0.0.255"
    case (239, 192...195, _): return "239.195.255.255"
    case (239, _, _): return "239.255.255.255"
    default: return "224.2.127.254"
    }
  }
}

/// The schedule of announcements, RFC 2974 section 3.1.
///
/// All announcements of a scope share 4000 bits per second, and each is repeated at most every 300 s. The schedule
/// counts the announcements of other senders. The first announcements follow after 1, 2 and 4 s, as far as 4000 bits
/// per second allow. They make up for lost packets, and let a player that started earlier find the session.
public struct AnnouncementSchedule: Sendable {
  /// The bandwidth that all announcements share, in bits per second.
  static let bandwidth = 4000
  /// The minimum time between two announcements.
  public static let minimumInterval = Duration(seconds: 300)
  /// The time for which a silent announcement is counted.
  static let memory = Duration(seconds: 3600)
  /// The maximum number of other announcements counted. More would be abuse, and would make ours even rarer.
  public static let limit = 1024
  /// The number of announcements before the first full interval.
  public static let firstCount = 4

  private var others: [AnnouncementPacket.Identifier: Instant] = [:]
  /// The random factor of the interval, from two thirds to four thirds.
  private var part = 1.0
  /// The time of the last announcement; `nil` before the first.
  public private(set) var last: Instant?
  /// The number of announcements of this description, up to `firstCount`.
  private var sentCount = 0

  /// Creates a schedule whose first announcement is due at once.
  public init() {}

  /// The number of other announcements.
  public var count: Int { others.count }

  /// Records an announcement of another sender.
  public mutating func note(_ packet: AnnouncementPacket, at now: Instant) {
    if packet.isDeletion {
      others[packet.identifier] = nil
    } else if others[packet.identifier] != nil || others.count < Self.limit {
      others[packet.identifier] = now
    }
  }

  /// Records that our announcement was sent, and draws the next interval. Other announcements that were silent for
  /// long are removed.
  public mutating func sent(at now: Instant, using generator: inout some RandomNumberGenerator) {
    last = now
    sentCount = min(sentCount + 1, Self.firstCount)
    part = Double.random(in: 2.0 / 3...4.0 / 3, using: &generator)
    let (memory, interval) = (Self.memory, interval(bytes: 1024))
    others = others.filter { now - $0.value < max(memory, Duration(seconds: interval.seconds * 10)) }
  }

  /// Starts the announcements of another description, the first ones at short intervals again.
  public mutating func begin() { sentCount = 0 }

  /// Returns the mean time between two announcements of `bytes` each.
  public func interval(bytes: Int) -> Duration {
    max(Self.minimumInterval, share(bytes: bytes))
  }

  /// Returns the time in which all senders together may send `bytes` each.
  private func share(bytes: Int) -> Duration {
    Duration(seconds: Double(8 * (others.count + 1) * bytes) / Double(Self.bandwidth))
  }

  /// Returns the time at which the next announcement of `bytes` is due; `nil` for the first, which is due at once.
  public func deadline(bytes: Int) -> Instant? {
    guard let last else { return nil }
    let usual = Duration(seconds: interval(bytes: bytes).seconds * part)
    guard sentCount < Self.firstCount else { return last + usual }
    let early = Duration(seconds: Double(1 << max(0, sentCount - 1)))
    return last + min(usual, max(early, share(bytes: bytes)))
  }
}
