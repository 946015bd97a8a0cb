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
  /// The time until which two receivers share the address, if none of them reports again; `nil` where they do not.
  private var groupUntil: Instant?

  /// The time for which a silent receiver is remembered: many RTCP intervals (section 6.3.5).
  static let memory = Duration(seconds: 120)

  /// Records a datagram of `ssrc`, with a report on our stream or without one. Returns `true` if the receiver is new. In
  /// a full table no receiver is new: otherwise a large group would seem to change all the time.
  mutating func note(_ ssrc: UInt32, isReport: Bool, at time: Instant) -> Bool {
    var free: Int?
    for index in members.indices {
      guard let lastHeard = members[index].lastHeard, time - lastHeard < Self.memory else {
        free = free ?? index
        continue
      }
      guard members[index].ssrc == ssrc else { continue }
      members[index].lastHeard = time
      if isReport {
        // After a long silence it begins anew.
        members[index].reports = (reports(of: index, at: time)?.first ?? time, time)
        noteGroup(of: index)
      }
      return false
    }
    guard let free else { return false }
    members[free] = Member(ssrc: ssrc, lastHeard: time, reports: isReport ? (time, time) : nil)
    if isReport { noteGroup(of: free) }
    return true
  }

  /// Returns `true` if two receivers reported recently and in the same time, so that several share the address. One
  /// that no longer reports once another has begun was replaced by it.
  func isGroup(at time: Instant) -> Bool { groupUntil.map { time < $0 } ?? false }

  /// Notes those that report in the same time as the receiver at `index`, which has reported.
  private mutating func noteGroup(of index: Int) {
    guard let reports = members[index].reports else { return }
    for other in members.indices where other != index {
      guard let others = self.reports(of: other, at: reports.last), others.last >= reports.first else { continue }
      let end = min(reports.last, others.last) + Self.memory
      groupUntil = max(groupUntil ?? end, end)
    }
  }

  private func reports(of index: Int, at time: Instant) -> (first: Instant, last: Instant)? {
    guard members[index].lastHeard != nil, let reports = members[index].reports, time - reports.last < Self.memory
    else { return nil }
    return reports
  }

  /// Forgets who has reported, as after a change of our source. Known receivers stay known.
  mutating func forgetReports() {
    for index in members.indices { members[index].reports = nil }
    groupUntil = nil
  }

  /// Removes a receiver that sent BYE.
  mutating func remove(_ ssrc: UInt32) {
    for index in members.indices where members[index].ssrc == ssrc { members[index].lastHeard = nil }
    guard groupUntil != nil else { return }
    groupUntil = nil
    for index in members.indices where members[index].lastHeard != nil { noteGroup(of: index) }
  }
}
