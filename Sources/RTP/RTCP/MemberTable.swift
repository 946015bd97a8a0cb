import Platform

/// The receivers that sent RTCP recently: the member table of RFC 3550 section 6.2.1, with a fixed size.
struct MemberTable: Sendable {
  private struct Member {
    var ssrc: UInt32 = 0
    /// The time of the last report; `nil` if the entry is free.
    var lastHeard: Instant?
  }

  private var members: InlineArray<64, Member> = .init(repeating: Member())

  /// The time for which a silent receiver is remembered: many RTCP intervals (section 6.3.5).
  static let memory = Duration(seconds: 120)

  /// Records a report of `ssrc`. Returns `true` if the receiver is new. In a full table no receiver is new: otherwise
  /// a large group would seem to change all the time.
  mutating func note(_ ssrc: UInt32, at time: Instant) -> Bool {
    var free: Int?
    for index in members.indices {
      guard let lastHeard = members[index].lastHeard, time - lastHeard < Self.memory else {
        free = free ?? index
        continue
      }
      guard members[index].ssrc == ssrc else { continue }
      members[index].lastHeard = time
      return false
    }
    guard let free else { return false }
    members[free] = Member(ssrc: ssrc, lastHeard: time)
    return true
  }

  /// Returns `true` if more than one receiver sent RTCP recently, so that several share the address.
  func isGroup(at time: Instant) -> Bool {
    var count = 0
    for index in members.indices {
      if let lastHeard = members[index].lastHeard, time - lastHeard < Self.memory { count += 1 }
    }
    return count > 1
  }

  /// Removes a receiver that sent BYE.
  mutating func remove(_ ssrc: UInt32) {
    for index in members.indices where members[index].ssrc == ssrc { members[index].lastHeard = nil }
  }
}
