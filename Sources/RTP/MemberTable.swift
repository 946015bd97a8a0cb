import Media

/// The receivers that RTCP has shown of late: the member table of RFC 3550 section 6.2.1, of a fixed size.
struct MemberTable: Sendable {
  private struct Member {
    var ssrc: UInt32 = 0
    /// When it was last heard; nil where the place is free.
    var lastHeard: MediaTime?
  }

  private var members: InlineArray<64, Member> = .init(repeating: Member())

  /// How long one that is not heard is remembered: many intervals of RTCP (section 6.3.5).
  static let memory = MediaTime(seconds: 120)

  /// Notes a report of `ssrc`; whether it is a receiver that was not there before. Where the table is full, nobody is
  /// new: a large group would otherwise seem to change all the time.
  mutating func note(_ ssrc: UInt32, at time: MediaTime) -> Bool {
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

  /// Returns whether more than one receiver was heard of late: several share the address.
  func isGroup(at time: MediaTime) -> Bool {
    var count = 0
    for index in members.indices {
      if let lastHeard = members[index].lastHeard, time - lastHeard < Self.memory { count += 1 }
    }
    return count > 1
  }

  /// Forgets a receiver that said BYE.
  mutating func remove(_ ssrc: UInt32) {
    for index in members.indices where members[index].ssrc == ssrc { members[index].lastHeard = nil }
  }
}
