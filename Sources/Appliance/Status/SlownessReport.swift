package import Platform
package import Streaming

/// The report of the viewers that are too slow for the stream: a line when a viewer loses frames, and one once it has
/// taken all frames for a while. A viewer that loses frames and takes them in turns is told of once.
package struct SlownessReport {
  /// A viewer that was reported to lose frames.
  private struct Slow {
    /// The last time at which it lost frames.
    var last: Instant
    /// The time without a loss after which it takes all frames again.
    let steadyTime: Duration
  }

  /// The time without a loss after which a viewer takes all frames again.
  package static let steadyTime = Duration.seconds(10)
  /// The same time for a viewer that lost frames again so soon after it was reported to take all of them.
  package static let relapseTime = Duration.seconds(60)

  private var slow: [ViewerID: Slow] = [:]
  /// The times at which viewers were reported to take all frames again.
  private var recoveries: [ViewerID: Instant] = [:]

  /// Creates a report without viewers.
  package init() {}

  /// Notes a viewer's present figures, about once a second. Returns the change to report; nil if there is none.
  package mutating func note(_ viewer: DestinationStatistics, at now: Instant) -> ReachabilityReport.Line? {
    if viewer.isSlow {
      guard slow[viewer.id] == nil else {
        slow[viewer.id]?.last = now
        return nil
      }
      let relapses = recoveries[viewer.id].map { now - $0 < Self.relapseTime } ?? false
      slow[viewer.id] = Slow(last: now, steadyTime: relapses ? Self.relapseTime : Self.steadyTime)
      return ReachabilityReport.Line(
        text: "\(viewer.name): too slow for the stream, losing frames", isWarning: true)
    }
    guard let told = slow[viewer.id], now - told.last >= told.steadyTime else { return nil }
    slow[viewer.id] = nil
    recoveries[viewer.id] = now
    return ReachabilityReport.Line(
      text: "\(viewer.name): takes all frames again (\(viewer.framesDropped) lost so far)", isWarning: false)
  }

  /// Forgets the viewers that have left.
  package mutating func forgetOthers(than viewers: [DestinationStatistics]) {
    guard max(slow.count, recoveries.count) > viewers.count else { return }
    let present = Set(viewers.map(\.id))
    slow = slow.filter { present.contains($0.key) }
    recoveries = recoveries.filter { present.contains($0.key) }
  }
}
