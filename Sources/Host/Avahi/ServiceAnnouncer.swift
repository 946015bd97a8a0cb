import Glibc
package import Platform

/// An announcer of streams by DNS-SD, through Avahi. It announces as soon as Avahi runs, and again whenever Avahi
/// restarts. Its own thread (`nj-dns-sd`) does the work, and no caller waits for it.
///
/// Releasing the announcer withdraws everything.
package final class ServiceAnnouncer: Sendable {
  private let board: AnnouncementBoard

  /// The longest wait of ``stop()``: Avahi sends the goodbyes when it is told, or when the program's connection ends.
  private static let farewell = Duration(seconds: 0.5)

  /// Starts the announcer, without announcements.
  ///
  /// - Throws: ``SystemFailure`` where the process has no thread or descriptor left.
  package init() throws(SystemFailure) {
    let board = try AnnouncementBoard()
    self.board = board
    let thread = try NamedThread("nj-dns-sd") {
      AnnouncementWorker(board).run()
      board.leave()
    }
    thread.detach()
  }

  deinit { board.end() }

  /// Sets the requested announcements. An announcement that was already made stays unchanged.
  package func announce(_ wanted: [ServiceAnnouncement]) { board.want(wanted) }

  /// The state of each announcement, in the order of the request.
  package var services: [AnnouncedService] { board.services }

  /// Returns the events since the last call.
  package func takeEvents() -> [AnnouncementEvent] { board.takeEvents() }

  /// Withdraws all announcements for good. Waits for that half a second at most.
  package func stop() {
    board.end()
    board.waitUntilLeft(by: .now() + Self.farewell)
  }
}

/// The thread's work: it connects to the bus, again and again, and keeps Avahi's records as the board requests.
struct AnnouncementWorker {
  private let board: AnnouncementBoard

  /// The delay before a missing bus is tried again; an attempt costs almost nothing.
  private static let busPause = Duration(seconds: 3)
  /// The delays before Avahi is asked again after a refusal.
  static let delays = Duration(seconds: 5)...Duration(seconds: 60)

  init(_ board: AnnouncementBoard) { self.board = board }

  func run() {
    var backOff = RetryBackOff(Self.delays)
    while !board.isEnded {
      let began = Instant.now()
      do throws(BusError) {
        try AnnouncementGroups(board).follow()
      } catch {
        let failure = DiscoveryError(error)
        board.wait(for: failure.reason, mend: "nightjar tries again; \(failure.mend)")
        let isBusMissing = if case .noBus = failure { true } else { false }
        rest(until: .now() + (isBusMissing ? Self.busPause : backOff.failed(after: .now() - began)))
      }
    }
  }

  /// Sleeps until `time` unless the announcer stops.
  private func rest(until time: Instant) {
    while !board.isEnded, !board.wake.wait(until: time) { board.wake.clear() }
  }
}
