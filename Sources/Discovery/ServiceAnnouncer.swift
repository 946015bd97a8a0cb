import Glibc
public import Media
import SystemBus
import Threading

/// Announces streams by DNS-SD, through Avahi: as soon as it runs, again whenever it comes back, and no longer than it is
/// wanted. A thread of its own does it (`nj-dns-sd`), and nobody waits for that.
///
/// Letting it go withdraws everything.
public final class ServiceAnnouncer: Sendable {
  private let board: AnnouncementBoard

  /// How long ``stop()`` waits: Avahi says goodbye when it is told, or when this program's connection ends.
  private static let farewell = MediaTime(seconds: 0.5)

  /// Starts it; nothing is announced yet.
  ///
  /// - Throws: ``SystemFailure`` where the process has no thread or descriptor left.
  public init() throws(SystemFailure) {
    let board = try AnnouncementBoard()
    self.board = board
    let thread = try NamedThread("nj-dns-sd") {
      AnnouncementWorker(board).run()
      board.leave()
    }
    thread.detach()
  }

  deinit { board.end() }

  /// What is to be announced from now on. What was announced so already stays as it is.
  public func announce(_ wanted: [ServiceAnnouncement]) { board.want(wanted) }

  /// How it stands with each, in the order that they were asked for.
  public var services: [AnnouncedService] { board.services }

  /// What a person ought to be told since the last call.
  public func takeEvents() -> [AnnouncementEvent] { board.takeEvents() }

  /// Withdraws everything, for good. Waits for it half a second at most.
  public func stop() {
    board.end()
    let deadline = MediaTime.now() + Self.farewell
    while !board.isLeft, MediaTime.now() < deadline { usleep(5000) }
  }
}

/// The thread's work: connects to the bus, again and again, and keeps Avahi's records as the board wants them.
struct AnnouncementWorker {
  private let board: AnnouncementBoard

  /// After how long a bus that is gone is looked for again: it costs next to nothing.
  private static let busPause = MediaTime(seconds: 3)

  init(_ board: AnnouncementBoard) { self.board = board }

  func run() {
    var pause = RetryPause()
    while !board.isEnded {
      let began = MediaTime.now()
      do throws(BusError) {
        try AnnouncementGroups(board).follow()
      } catch {
        let failure = DiscoveryError(error)
        board.wait(for: failure.reason, mend: "it is tried again; \(failure.mend)")
        // What has worked for a while is another failure.
        if .now() - began > RetryPause.longest { pause = RetryPause() }
        if case .noBus = failure { rest(until: .now() + Self.busPause) } else { rest(until: .now() + pause.take()) }
      }
    }
  }

  /// Sleeps, unless it is over.
  private func rest(until time: MediaTime) {
    // By what needs no descriptor: none may be left, which is why there is no bus.
    while !board.isEnded, MediaTime.now() < time { usleep(100_000) }
  }
}
