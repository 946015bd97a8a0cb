import Control
import Discovery
import Media
import RTSPServer
import Synchronization

/// Who waits for a reload.
private struct ReloadWaiter {
  let number: UInt64
  let asked: MediaTime
  let continuation: CheckedContinuation<ReloadAnswer, any Error>
}

/// The box that runs, as the control API sees it: what the main thread publishes, and what others ask of it.
final class BoxControl: ControlTarget {
  private struct State {
    /// All of the configuration, whether they stream or not.
    var names: [String] = []
    var cameras: [StreamCamera] = []
    var listeners: [BoxStatus.Listener] = []
    var announcer: ServiceAnnouncer?
    var reloads = 0
    var isReloadDue = false
    /// Those who wait for the next one, and those of the one that has begun.
    var waiting: [ReloadWaiter] = []
    var answering: [ReloadWaiter] = []
    var lastWaiter: UInt64 = 0
    var hasEnded = false
  }

  private let state = Mutex(State())
  private let wake: WakeUp
  private let started: MediaTime
  private let isMemoryLocked: Bool
  let figures: BoxFigures
  let metrics: MetricsPage

  init(_ wake: WakeUp, started: MediaTime, isMemoryLocked: Bool) {
    self.wake = wake
    self.isMemoryLocked = isMemoryLocked
    self.started = started
    let figures = BoxFigures(at: .now())
    self.figures = figures
    metrics = MetricsPage { figures.write(to: &$0) }
  }

  // MARK: What others ask

  var cameras: [String] { state.withLock { $0.names } }

  func camera(_ name: String) -> (any CameraTarget)? {
    state.withLock { state in state.cameras.first { $0.name == name } }
  }

  func status() -> BoxStatus {
    let now = state.withLock { $0 }
    return BoxStatus(
      uptimeSeconds: (MediaTime.now() - started).seconds, reloads: now.reloads, memoryLocked: isMemoryLocked,
      listeners: now.listeners,
      announcements: (now.announcer?.services ?? []).map(BoxStatus.Announcement.init),
      cameras: now.cameras.map { $0.status() },
      absent: figures.health().cameras.filter { $0.state == .absent }
        .map { BoxStatus.Absent(name: $0.name, reason: $0.reason ?? "") })
  }

  func health() -> HealthStatus { figures.health() }

  func reload() async throws -> ReloadAnswer {
    let number = state.withLock { state in
      state.lastWaiter += 1
      return state.lastWaiter
    }
    // A server that ends waits for those whom it answers: they must not wait for the main thread then.
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

  /// Takes those who wait, whether their reload has begun or not.
  private func take(_ isMeant: (ReloadWaiter) -> Bool) -> [ReloadWaiter] {
    state.withLock { state in
      let taken = (state.waiting + state.answering).filter(isMeant)
      state.waiting.removeAll(where: isMeant)
      state.answering.removeAll(where: isMeant)
      return taken
    }
  }

  private static let ended = CommandFailure(kind: .unavailable, description: "the program is ending")

  // MARK: The main thread's side

  /// A reload that nobody waits for.
  func askForReload() {
    state.withLock { $0.isReloadDue = true }
    wake.fire()
  }

  /// Where a reload is due, it begins with this: those who wait for it are answered by ``endReload(_:)``. Since when the
  /// first of them has waited; nil where none is due.
  func beginReload() -> MediaTime? {
    state.withLock { state in
      guard state.isReloadDue else { return nil }
      state.isReloadDue = false
      state.answering += state.waiting
      state.waiting.removeAll()
      return state.answering.map(\.asked).min() ?? .now()
    }
  }

  /// Answers those who have asked before `time` and whose reload has not begun; it is carried out all the same.
  func answerWaiters(since time: MediaTime, _ answer: ReloadAnswer) {
    let late = state.withLock { state in
      let late = state.waiting.filter { $0.asked < time }
      state.waiting.removeAll { $0.asked < time }
      return late
    }
    for waiter in late { waiter.continuation.resume(returning: answer) }
  }

  /// Answers those who wait for the reload that has begun.
  func endReload(_ answer: Result<ReloadAnswer, any Error>) {
    let answering = state.withLock { state in
      if case .success = answer { state.reloads += 1 }
      defer { state.answering.removeAll() }
      return state.answering
    }
    // Before anybody knows of it.
    if case .success = answer { figures.noteReload() }
    for waiter in answering { waiter.continuation.resume(with: answer) }
    // Others may have asked meanwhile.
    wake.fire()
  }

  /// Which cameras there are, those of them that stream and that do not, where the box listens, and who announces it.
  func publish(
    _ names: [String], _ cameras: [StreamCamera], absent: [BoxStatus.Absent], listeners: [BoxStatus.Listener],
    _ announcer: ServiceAnnouncer?
  ) {
    figures.follow(names, cameras, absent: absent)
    state.withLock { state in
      (state.names, state.cameras) = (names, cameras)
      (state.listeners, state.announcer) = (listeners, announcer)
    }
  }

  /// No reload will be carried out any more.
  func end() {
    state.withLock { $0.hasEnded = true }
    for waiter in take({ _ in true }) { waiter.continuation.resume(throwing: Self.ended) }
  }
}
