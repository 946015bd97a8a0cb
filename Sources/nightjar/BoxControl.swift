import Control
import Media
import RTSPServer
import Synchronization

/// Who waits for a reload.
typealias ReloadWaiter = CheckedContinuation<ReloadAnswer, any Error>

/// The box that runs, as the control API sees it: what the main thread publishes, and what others ask of it.
final class BoxControl: ControlTarget {
  private struct State {
    var cameras: [StreamCamera] = []
    var listeners: [BoxStatus.Listener] = []
    var reloads = 0
    var isReloadDue = false
    var waiting: [ReloadWaiter] = []
    var hasEnded = false
  }

  private let state = Mutex(State())
  private let wake: WakeUp
  private let started: MediaTime

  init(_ wake: WakeUp, started: MediaTime) {
    self.wake = wake
    self.started = started
  }

  // MARK: What others ask

  var cameras: [String] { state.withLock { $0.cameras.map(\.name) } }

  func camera(_ name: String) -> (any CameraTarget)? {
    state.withLock { state in state.cameras.first { $0.name == name } }
  }

  func status() -> BoxStatus {
    let (cameras, listeners, reloads) = state.withLock { ($0.cameras, $0.listeners, $0.reloads) }
    return BoxStatus(
      uptimeSeconds: (MediaTime.now() - started).seconds, reloads: reloads, listeners: listeners,
      cameras: cameras.map { $0.status() })
  }

  func reload() async throws -> ReloadAnswer {
    try await withCheckedThrowingContinuation { waiter in
      let hasEnded = state.withLock { state in
        if !state.hasEnded {
          state.waiting.append(waiter)
          state.isReloadDue = true
        }
        return state.hasEnded
      }
      if hasEnded { return waiter.resume(throwing: Self.ended) }
      wake.fire()
    }
  }

  private static let ended = CommandFailure(kind: .unavailable, description: "the program is ending")

  // MARK: The main thread's side

  /// A reload that nobody waits for.
  func askForReload() {
    state.withLock { $0.isReloadDue = true }
    wake.fire()
  }

  /// Who waits for the reload that is due; nil where none is.
  func takeReloads() -> [ReloadWaiter]? {
    state.withLock { state in
      guard state.isReloadDue else { return nil }
      state.isReloadDue = false
      defer { state.waiting.removeAll() }
      return state.waiting
    }
  }

  /// A reload has been carried out.
  func noteReload() { state.withLock { $0.reloads += 1 } }

  /// Which cameras there are, and where the box listens.
  func publish(_ cameras: [StreamCamera], listeners: [BoxStatus.Listener]) {
    state.withLock { ($0.cameras, $0.listeners) = (cameras, listeners) }
  }

  /// No reload will be carried out any more, nor ended of those that `others` wait for.
  func end(_ others: [ReloadWaiter]) {
    let waiting = state.withLock { state in
      state.hasEnded = true
      defer { state.waiting.removeAll() }
      return state.waiting
    }
    for waiter in waiting + others { waiter.resume(throwing: Self.ended) }
  }
}
