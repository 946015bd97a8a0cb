public import Media

/// A packet by which a session is announced to whoever listens, RFC 2974 section 6; without authentication, encryption
/// and compression.
public struct AnnouncementPacket: Hashable, Sendable {
  /// Who announces what: a change of the description changes the number (section 6, "Message Identifier Hash").
  public struct Identifier: Hashable, Sendable {
    /// The sender's address: 4 or 16 bytes.
    public var origin: [UInt8]
    /// A hash of the payload.
    public var hash: UInt16

    /// An identifier.
    public init(origin: [UInt8], hash: UInt16) {
      self.origin = origin
      self.hash = hash
    }
  }

  /// Who announces what.
  public var identifier: Identifier
  /// Whether the session is over.
  public var isDeletion: Bool

  /// The type of what follows the header, with the zero at its end.
  static let payloadType = Array("application/sdp\0".utf8)
  /// The UDP port of SAP, RFC 2974 section 3.
  public static let port: UInt16 = 9875

  /// The packet that announces `description`, or takes it back.
  ///
  /// - Parameters:
  ///   - description: the session description, as SDP.
  ///   - origin: this side's address, as the network has it: 4 or 16 bytes.
  ///   - isDeletion: whether it takes the session back.
  public static func bytes(announcing description: String, from origin: [UInt8], isDeletion: Bool = false) -> [UInt8] {
    let payload = Array(description.utf8)
    // Version 1; A for IPv6, T for a deletion.
    let flags: UInt8 = 0x20 | (origin.count == 16 ? 0x10 : 0) | (isDeletion ? 0x04 : 0)
    let hash = hash(of: payload)
    return [flags, 0, UInt8(hash >> 8), UInt8(hash & 0xff)] + origin + payloadType + payload
  }

  /// What an announcement's payload is told from another's by; never 0, which old senders mean nothing by.
  static func hash(of payload: [UInt8]) -> UInt16 {
    // FNV-1a, folded.
    var hash: UInt32 = 0x811c_9dc5
    for byte in payload { hash = (hash ^ UInt32(byte)) &* 0x0100_0193 }
    let folded = UInt16(truncatingIfNeeded: hash ^ hash >> 16)
    return folded == 0 ? 1 : folded
  }

  /// Reads the header of somebody's packet, whatever it announces; nil where it is none of version 0 or 1.
  public init?(parsing bytes: UnsafeRawBufferPointer) {
    guard bytes.count >= 8, bytes[0] >> 5 <= 1 else { return nil }
    let isIPv6 = bytes[0] & 0x10 != 0
    let length = isIPv6 ? 16 : 4
    guard bytes.count > 4 + length + Int(bytes[1]) * 4 else { return nil }
    identifier = Identifier(
      origin: Array(bytes[4..<4 + length]), hash: UInt16(bytes[2]) << 8 | UInt16(bytes[3]))
    isDeletion = bytes[0] & 0x04 != 0
  }

  /// Where a session for `group` is announced (section 3): the highest address of an administrative scope, else of the
  /// global one; for IPv6 `FF0X::2:7FFE` of the group's own scope. Nil where it is no group.
  public static func group(for group: ConnectionAddress) -> String? {
    guard group.isMulticast else { return nil }
    if group.family == .ip6 {
      let scope = group.description.dropFirst(3).prefix { $0 != ":" }
      // `ff` and two digits: flags and scope.
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

/// When to announce again, RFC 2974 section 3.1: all announcements of a scope share 4000 bits a second, and none comes
/// more often than every 300 s. It hears the others to count them. The first ones come after 1, 2 and 4 s, as far as 4000 bits
/// a second allow that, because packets are lost, and a player that was started first is to find the session.
public struct AnnouncementSchedule: Sendable {
  /// Bits a second for all.
  static let bandwidth = 4000
  /// The least time between two.
  public static let minimumInterval = MediaTime(seconds: 300)
  /// How long one that is not heard is counted.
  static let memory = MediaTime(seconds: 3600)
  /// The most others that are counted: more would be somebody's joke, and make ours rarer still.
  public static let limit = 1024
  /// How many announcements come before the first whole interval.
  public static let firstCount = 4

  private var others: [AnnouncementPacket.Identifier: MediaTime] = [:]
  /// Where in the interval the next one comes: from two thirds of it to four.
  private var part = 1.0
  /// When the last one was sent; nil where none was.
  public private(set) var last: MediaTime?
  /// How many were sent of this description, as far as it matters.
  private var sentCount = 0

  /// A schedule by which the first announcement is due at once.
  public init() {}

  /// How many others there are.
  public var count: Int { others.count }

  /// Somebody's announcement was heard.
  public mutating func note(_ packet: AnnouncementPacket, at now: MediaTime) {
    if packet.isDeletion {
      others[packet.identifier] = nil
    } else if others[packet.identifier] != nil || others.count < Self.limit {
      others[packet.identifier] = now
    }
  }

  /// Notes that ours was sent, and draws when it is due again; others that were silent for long are forgotten.
  public mutating func sent(at now: MediaTime, using generator: inout some RandomNumberGenerator) {
    last = now
    sentCount = min(sentCount + 1, Self.firstCount)
    part = Double.random(in: 2.0 / 3...4.0 / 3, using: &generator)
    let (memory, interval) = (Self.memory, interval(bytes: 1024))
    others = others.filter { now - $0.value < max(memory, MediaTime(seconds: interval.seconds * 10)) }
  }

  /// Another description is announced from now on: its first announcements come closer together again.
  public mutating func begin() { sentCount = 0 }

  /// The time between two announcements of `bytes` each, on average.
  public func interval(bytes: Int) -> MediaTime {
    max(Self.minimumInterval, share(bytes: bytes))
  }

  /// The time in which all together may send `bytes` each.
  private func share(bytes: Int) -> MediaTime {
    MediaTime(seconds: Double(8 * (others.count + 1) * bytes) / Double(Self.bandwidth))
  }

  /// When the next one of `bytes` is due; nil where it is the first, at once.
  public func deadline(bytes: Int) -> MediaTime? {
    guard let last else { return nil }
    let usual = MediaTime(seconds: interval(bytes: bytes).seconds * part)
    guard sentCount < Self.firstCount else { return last + usual }
    let early = MediaTime(seconds: Double(1 << max(0, sentCount - 1)))
    return last + min(usual, max(early, share(bytes: bytes)))
  }
}
