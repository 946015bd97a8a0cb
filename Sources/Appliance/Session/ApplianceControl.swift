import Alerts
import Host
import Platform
import Serving
import Synchronization

/// A client that waits for a reload.
private struct ReloadWaiter {
  let number: UInt64
  let asked: Instant
  let continuation: CheckedContinuation<ReloadAnswer, any Error>
}

/// The running appliance as the control API sees it: the state that the main thread publishes, and the requests of
/// clients.
final class ApplianceControl: ControlTarget {
  private struct State {
    /// The names of all configured cameras, streaming or not.
    var names: [String] = []
    var cameras: [StreamCamera] = []
    var listeners: [ApplianceStatus.Listener] = []
    var page: Page?
    var announcer: ServiceAnnouncer?
    var reloads = 0
    var isReloadDue = false
    /// The clients that wait for the next reload, and in `answering` those of the reload that has begun.
    var waiting: [ReloadWaiter] = []
    var answering: [ReloadWaiter] = []
    var lastWaiter: UInt64 = 0
    var hasEnded = false
  }

  /// The page, as it is served now.
  struct Page {
    let phones: Phones?
    let listeners: [TCPListener]
    let authority: [UInt8]?
    let push: PushSubscriptions?
  }

  private let state = Mutex(State())
  private let wake: WakeUp
  private let started: Instant
  private let isMemoryLocked: Bool
  let figures: ApplianceFigures
  let metrics: MetricsPage
  let changes = ChangeSignal()
  let alerts: AlertHistory

  init(_ wake: WakeUp, started: Instant, isMemoryLocked: Bool, alerts: AlertHistory) {
    self.alerts = alerts
    self.wake = wake
    self.isMemoryLocked = isMemoryLocked
    self.started = started
    let figures = ApplianceFigures(at: .now())
    self.figures = figures
    metrics = MetricsPage { figures.write(to: &$0) }
  }

  // MARK: What others ask

  var cameras: [String] { state.withLock { $0.names } }

  func camera(_ name: String) -> (any CameraTarget)? {
    state.withLock { state in state.cameras.first { $0.name == name } }
  }

  func status() -> ApplianceStatus {
    let now = state.withLock { $0 }
    return ApplianceStatus(
      uptimeSeconds: (Instant.now() - started).seconds, reloads: now.reloads, memoryLocked: isMemoryLocked,
      listeners: now.listeners,
      announcements: (now.announcer?.services ?? []).map(ApplianceStatus.Announcement.init),
      cameras: now.cameras.map { $0.status() },
      absent: figures.health().cameras.filter { $0.state == .absent }
        .map { ApplianceStatus.Absent(name: $0.name, reason: $0.reason ?? "") })
  }

  func health() -> HealthStatus { figures.health() }

  var phones: Phones? { state.withLock { $0.page?.phones } }

  var push: PushSubscriptions? { state.withLock { $0.page?.push } }

  var authority: [UInt8]? { state.withLock { $0.page?.authority } }

  var pageURL: String? {
    let listener = state.withLock { $0.page?.listeners.first { !$0.isLoopback } }
    return listener.map { "https://\($0.hostForOthers):\($0.port)" }
  }

  func reload() async throws -> ReloadAnswer {
    let number = state.withLock { state in
      state.lastWaiter += 1
      return state.lastWaiter
    }
    // A server that ends waits for the clients that it answers; these must not wait for the main thread then.
    return try await withTaskCancellationHandler {
      try await withCheckedThrowingContinuation { continuation in
        let isTaken = state.withLock { state in
          guard !state.hasEnded, !Task.isCancelled else { return false }
          state.waiting.append(ReloadWaiter(number: number, asked: .now(), continuation: continuation))
          state.isReloadDue = true
          return true
        }
        if isTaken { wake.fire() } else { continuation.resume(throwing: Self.ended) }
      }
    } onCancel: {
      take { $0.number == number }.forEach { $0.continuation.resume(throwing: Self.ended) }
    }
  }

  /// Removes and returns the waiting clients that match, also those whose reload has begun.
  private func take(_ isMeant: (ReloadWaiter) -> Bool) -> [ReloadWaiter] {
    state.withLock { state in
      let taken = (state.waiting + state.answering).filter(isMeant)
      state.waiting.removeAll(where: isMeant)
      state.answering.removeAll(where: isMeant)
      return taken
    }
  }

  private static let ended = ApplianceFailure(kind: .unavailable, description: "the program is ending")

  // MARK: The main thread's side

  /// Requests a reload without waiting for its answer.
  func askForReload() {
    state.withLock { $0.isReloadDue = true }
    wake.fire()
  }

  /// Begins a reload if one is due. The clients that wait for the reload are answered by ``endReload(_:)``.
  ///
  /// - Returns: the time since which the first client has waited; `nil` if no reload is due.
  func beginReload() -> Instant? {
    state.withLock { state in
      guard state.isReloadDue else { return nil }
      state.isReloadDue = false
      state.answering += state.waiting
      state.waiting.removeAll()
      return state.answering.map(\.asked).min() ?? .now()
    }
  }

  /// Answers the clients that have waited since before `time` and whose reload has not begun. The reload is carried out
  /// all the same.
  func answerWaiters(since time: Instant, _ answer: ReloadAnswer) {
    let late = state.withLock { state in
      let late = state.waiting.filter { $0.asked < time }
      state.waiting.removeAll { $0.asked < time }
      return late
    }
    for waiter in late { waiter.continuation.resume(returning: answer) }
  }

  /// Answers the clients that wait for the reload that has begun.
  func endReload(_ answer: Result<ReloadAnswer, any Error>) {
    let answering = state.withLock { state in
      if case .success = answer { state.reloads += 1 }
      defer { state.answering.removeAll() }
      return state.answering
    }
    // Before any client has its answer.
    if case .success = answer { figures.noteReload() }
    for waiter in answering { waiter.continuation.resume(with: answer) }
    // Others may have requested a reload meanwhile.
    wake.fire()
  }

  /// Publishes the configured cameras, those that stream and those that do not, the listeners, and the state of the
  /// announcements, and the page.
  func publish(
    _ names: [String], _ cameras: [StreamCamera], absent: [ApplianceStatus.Absent],
    listeners: [ApplianceStatus.Listener],
    _ announcer: ServiceAnnouncer?, page: Page?
  ) {
    figures.follow(names, cameras, absent: absent)
    state.withLock { state in
      (state.names, state.cameras) = (names, cameras)
      (state.listeners, state.announcer, state.page) = (listeners, announcer, page)
    }
    changes.announce()
  }

  /// Ends the control: no further reload is carried out.
  func end() {
    state.withLock { $0.hasEnded = true }
    for waiter in take({ _ in true }) { waiter.continuation.resume(throwing: Self.ended) }
  }
}
