import Media
import Synchronization

/// What passes between who wants something announced and the thread that does it.
final class AnnouncementBoard: Sendable {
  private struct State {
    var wanted: [ServiceAnnouncement] = []
    var services: [AnnouncedService] = []
    var events: [AnnouncementEvent] = []
    /// Why nothing is announced, as it was told last.
    var told: String?
    var isEnded = false
    var isLeft = false
  }

  /// The most events that wait to be told.
  private static let eventLimit = 64

  private let state = Mutex(State())
  /// Wakes the thread.
  let wake: Interrupt

  init() throws(SystemFailure) { wake = try Interrupt() }

  // MARK: The side that wants

  func want(_ wanted: [ServiceAnnouncement]) {
    let isNew = state.withLock { state in
      guard state.wanted != wanted else { return false }
      state.wanted = wanted
      // What they are told of until the thread has looked.
      let known = state.services
      state.services = wanted.map { announcement in
        known.first { $0.announcement == announcement }
          ?? AnnouncedService(
            announcement: announcement, name: announcement.name ?? announcement.camera,
            state: .waiting("not asked for yet"))
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

  func takeEvents() -> [AnnouncementEvent] {
    state.withLock { state in
      defer { state.events.removeAll() }
      return state.events
    }
  }

  /// Whether the thread has let go of everything.
  var isLeft: Bool { state.withLock { $0.isLeft } }

  // MARK: The thread's side

  var wanted: [ServiceAnnouncement] { state.withLock { $0.wanted } }
  var isEnded: Bool { state.withLock { $0.isEnded } }

  func leave() { state.withLock { $0.isLeft = true } }

  /// How it stands with what was wanted when the thread looked.
  func publish(_ services: [AnnouncedService]) {
    state.withLock { state in
      state.services = state.wanted.compactMap { wanted in
        services.first { $0.announcement == wanted } ?? state.services.first { $0.announcement == wanted }
      }
      if services.contains(where: { $0.state == .announced }) { state.told = nil }
    }
  }

  /// Nothing is announced, for `reason`; told once as long as it is the same, and not at all where nothing is to be done.
  func wait(for reason: String, mend: String?) {
    state.withLock { state in
      for index in state.services.indices { state.services[index].state = .waiting(reason) }
      guard let mend, state.told != reason, !state.wanted.isEmpty else { return }
      state.told = reason
      if state.events.count < Self.eventLimit { state.events.append(.waiting("\(reason); \(mend)")) }
    }
  }

  func tell(_ event: AnnouncementEvent) {
    state.withLock { if $0.events.count < Self.eventLimit { $0.events.append(event) } }
  }
}
