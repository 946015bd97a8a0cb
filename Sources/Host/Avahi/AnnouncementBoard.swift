import Platform
import Synchronization

/// The state shared between the callers that request announcements and the thread that makes them.
final class AnnouncementBoard: Sendable {
  private struct State {
    var wanted: [ServiceAnnouncement] = []
    var services: [AnnouncedService] = []
    /// The last reported reason why nothing is announced.
    var told: String?
    var isEnded = false
  }

  private let state = Mutex(State())
  private let events = EventQueue<AnnouncementEvent>()
  /// The interrupt that wakes the thread.
  let wake: Interrupt
  private let left: Interrupt

  init() throws(SystemFailure) {
    wake = try Interrupt()
    left = try Interrupt()
  }

  // MARK: The side that wants

  func want(_ wanted: [ServiceAnnouncement]) {
    let isNew = state.withLock { state in
      guard state.wanted != wanted else { return false }
      state.wanted = wanted
      // The reported state until the thread has looked.
      let known = state.services
      state.services = wanted.map { announcement in
        known.first { $0.announcement == announcement }
          ?? AnnouncedService(
            announcement: announcement, name: announcement.name ?? announcement.camera,
            state: .waiting("not requested yet"))
      }
      return true
    }
    if isNew { wake.fire() }
  }

  func end() {
    state.withLock { $0.isEnded = true }
    wake.fire()
  }

  var services: [AnnouncedService] { state.withLock { $0.services } }

  func takeEvents() -> [AnnouncementEvent] { events.take() }

  /// Waits until the thread has released everything, or until `deadline`.
  func waitUntilLeft(by deadline: Instant) { _ = left.wait(until: deadline) }

  // MARK: The thread's side

  var wanted: [ServiceAnnouncement] { state.withLock { $0.wanted } }
  var isEnded: Bool { state.withLock { $0.isEnded } }

  func leave() { left.fire() }

  /// Publishes the state of the announcements that the thread last saw.
  func publish(_ services: [AnnouncedService]) {
    state.withLock { state in
      state.services = state.wanted.compactMap { wanted in
        services.first { $0.announcement == wanted } ?? state.services.first { $0.announcement == wanted }
      }
      if services.contains(where: { $0.state == .announced }) { state.told = nil }
    }
  }

  /// Records that nothing is announced, for `reason`. A repeated reason is reported once; without requested
  /// announcements none is reported.
  func wait(for reason: String, mend: String?) {
    state.withLock { state in
      for index in state.services.indices { state.services[index].state = .waiting(reason) }
      guard let mend, state.told != reason, !state.wanted.isEmpty else { return }
      state.told = reason
      events.add(.waiting("\(reason); \(mend)"))
    }
  }

  func tell(_ event: AnnouncementEvent) { events.add(event) }
}
