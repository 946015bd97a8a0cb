import Platform

/// The receivers that sent RTCP recently: the member table of RFC 3550 section 6.2.1, with a fixed size.
struct MemberTable: Sendable {
  private struct Member {
    var ssrc: UInt32 = 0
    /// The time of the last report; `nil` if the entry is free.
    var lastHeard: Instant?
    /// The times of its first and its last report on our stream; `nil` before that.
    var reports: (first: Instant, last: Instant)?
  }

  private var members: InlineArray<64, Member> = .init(repeating: Member())

  /// The time for which a silent receiver is remembered: many RTCP intervals (section 6.3.5).
  static let memory = Duration(seconds: 120)

  /// Records a datagram of `ssrc`, with a report on our stream or without one. Returns `true` if the receiver is new. In a full table no receiver is new: otherwise
  /// a large group would seem to change all the time.
  mutating func note(_ ssrc: UInt32, isReport: Bool, at time: Instant) -> Bool {
    var free: Int?
    for index in members.indices {
      guard let lastHeard = members[index].lastHeard, time - lastHeard < Self.memory else {
        free = free ?? index
        continue
      }
      guard members[index].ssrc == ssrc else { continue }
      members[index].lastHeard = time
      if isReport { members[index].reports = (members[index].reports?.first ?? time, time) }
      return false
    }
    guard let free else { return false }
    members[free] = Member(ssrc: ssrc, lastHeard: time, reports: isReport ? (time, time) : nil)
    return true
  }

  /// Returns `true` if two receivers reported recently and in the same time, so that several share the address. One
  /// that no longer reports once another has begun was replaced by it.
  func isGroup(at time: Instant) -> Bool {
    for index in members.indices {
      guard let reports = reports(of: index, at: time) else { continue }
      for other in 0..<index {
        if let others = self.reports(of: other, at: time), reports.last >= others.first, others.last >= reports.first {
          return true
        }
      }
    }
    return false
  }

  private func reports(of index: Int, at time: Instant) -> (first: Instant, last: Instant)? {
    guard members[index].lastHeard != nil, let reports = members[index].reports, time - reports.last < Self.memory
    else { return nil }
    return reports
  }

  /// Forgets who has reported, as after a change of our source. Known receivers stay known.
  mutating func forgetReports() {
    for index in members.indices { members[index].reports = nil }
  }

  /// Removes a receiver that sent BYE.
  mutating func remove(_ ssrc: UInt32) {
    for index in members.indices where members[index].ssrc == ssrc { members[index].lastHeard = nil }
  }
}
