import Glibc
import Platform
package import Streaming

/// The report of who receives the stream at its address, and who does not: a line for each change.
package struct ReachabilityReport {
  /// A change.
  package struct Line: Equatable {
    /// The viewer's name and the change, in words.
    package let text: String
    /// `true` if packets are refused.
    package let isWarning: Bool
  }

  private struct Unreached: Equatable {
    var error: CInt
    var media: StreamMedia
  }

  private var refusals: [ViewerID: Unreached] = [:]
  /// The destinations at which somebody has been.
  private var reached: Set<ViewerID> = []
  /// The packets of destinations that have refused none, at the last look.
  private var taken: [ViewerID: Int] = [:]

  /// Creates a report without viewers.
  package init() {}

  /// Notes a viewer's present figures, about once a second. Returns the change to report; nil if there is none.
  package mutating func note(_ viewer: DestinationStatistics) -> Line? {
    if viewer.errorNumber == 0 { noteTaken(viewer) }
    let refusal = viewer.errorNumber == 0 ? nil : Unreached(error: viewer.errorNumber, media: viewer.unreached)
    let former = refusals[viewer.id]
    guard refusal != former else { return nil }
    refusals[viewer.id] = refusal
    taken[viewer.id] = nil
    guard let refusal else {
      reached.insert(viewer.id)
      return Line(text: "\(viewer.name): reachable", isWarning: false)
    }
    guard refusal.error == ECONNREFUSED else {
      // Until the error was known, packets seemed to be taken.
      reached.remove(viewer.id)
      return Line(text: "\(viewer.name): \(SystemFailure.text(refusal.error))", isWarning: true)
    }
    guard refusal.media == viewer.media else {
      reached.insert(viewer.id)
      return Line(text: "\(viewer.name): nobody is listening at the port of the \(refusal.media)", isWarning: true)
    }
    let whether = hasBeenReached(viewer) ? "any more" : "yet"
    return Line(text: "\(viewer.name): nobody is listening \(whether)", isWarning: true)
  }

  /// Forgets the viewers that have left.
  package mutating func forgetOthers(than viewers: [DestinationStatistics]) {
    guard max(refusals.count, reached.count, taken.count) > viewers.count else { return }
    let present = Set(viewers.map(\.id))
    refusals = refusals.filter { present.contains($0.key) }
    taken = taken.filter { present.contains($0.key) }
    reached.formIntersection(present)
  }

  /// Returns `true` if somebody has been there: a viewer that joined on its own, or a sender of RTCP.
  private func hasBeenReached(_ viewer: DestinationStatistics) -> Bool {
    viewer.isGuest || viewer.lastHeard != nil || reached.contains(viewer.id)
  }

  /// Notes a destination that takes packets. Where nobody listens, one of the first packets is refused; so packets that
  /// are taken from one look to the next have a receiver.
  private mutating func noteTaken(_ viewer: DestinationStatistics) {
    guard !viewer.isGuest, viewer.packets > 0, !reached.contains(viewer.id) else { return }
    if let before = taken[viewer.id], viewer.packets > before {
      reached.insert(viewer.id)
      taken[viewer.id] = nil
    } else {
      taken[viewer.id] = viewer.packets
    }
  }
}
