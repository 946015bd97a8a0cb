import Platform
import Synchronization

/// The scheduling that the threads of a pipeline report.
final class ThreadNotes: Sendable {
  // With room for the three threads, so that none of them makes it while the other two wait.
  let noted = Mutex<[String: ThreadScheduling]>(Dictionary(minimumCapacity: 3))

  /// Notes the calling thread's scheduling under its name.
  func note(_ name: String) {
    guard let scheduling = ThreadScheduling.current() else { return }
    noted.withLock { $0[name] = scheduling }
  }
}
