import CLinux
import Glibc

/// A thread with a name, for a stage or a driver: blocking calls belong here and not on Swift's own thread pool.
///
/// Releasing it waits for the thread's end.
package struct NamedThread: ~Copyable {
  private let thread: pthread_t

  /// Above ordinary threads, below the kernel's interrupt threads (50).
  private static let realTimePriority: CInt = 5

  /// The urgency with which the thread must run when it has work.
  package enum Urgency: Sendable {
    /// The thread has the default urgency.
    case ordinary
    /// The thread's timers are exact; its scheduling is the default one.
    case punctual
    /// The thread is punctual and has real-time priority as the value says: for a thread with little work that must be
    /// in time.
    case realTime(RealTimePriority)
  }

  private final class Entry: Sendable {
    let name: String
    let urgency: Urgency
    let isPunctual: Bool
    let body: @Sendable () -> Void
    init(name: String, urgency: Urgency, isPunctual: Bool, body: @escaping @Sendable () -> Void) {
      self.name = name
      self.urgency = urgency
      self.isPunctual = isPunctual
      self.body = body
    }
  }

  /// Starts `body` on a thread called `name` (at most 15 bytes).
  ///
  /// - Parameters:
  ///   - urgency: the thread's urgency. Settings that the system does not allow are left out.
  ///   - isPunctual: `true` wakes an urgent thread to the nanosecond; `false` is for comparison.
  /// - Throws: ``SystemFailure`` where the system has no thread left.
  package init(
    _ name: String, urgency: Urgency = .ordinary, isPunctual: Bool = true, _ body: @escaping @Sendable () -> Void
  ) throws(SystemFailure) {
    var created = pthread_t()
    let entry = Unmanaged.passRetained(Entry(name: name, urgency: urgency, isPunctual: isPunctual, body: body))
    let result = pthread_create(&created, nil, namedThreadMain, entry.toOpaque())
    guard result == 0 else {
      entry.release()
      throw SystemFailure("pthread_create", errorNumber: result)
    }
    thread = created
  }

  deinit {
    pthread_join(thread, nil)
  }

  /// Releases the thread without waiting for its end: for a thread that hangs in a driver.
  package consuming func detach() {
    pthread_detach(thread)
    discard self
  }

  fileprivate static func run(_ argument: UnsafeMutableRawPointer) {
    let entry = Unmanaged<Entry>.fromOpaque(argument).takeRetainedValue()
    // A thread whose name is too long keeps its parent's; nothing depends on it.
    _ = nightjar_thread_set_name(entry.name)
    switch entry.urgency {
    case .ordinary: break
    case .punctual: if entry.isPunctual { nightjar_thread_be_punctual() }
    case .realTime(let priority):
      if entry.isPunctual { nightjar_thread_be_punctual() }
      // Mostly the system does not allow it.
      if priority != .off { _ = nightjar_thread_raise(realTimePriority, priority == .on ? 1 : 0) }
    }
    entry.body()
  }
}

/// The use of real-time priority (`SCHED_RR`) for threads that must be in time.
package enum RealTimePriority: String, Sendable, CaseIterable {
  /// Real-time priority where the limit for it (`RLIMIT_RTPRIO`) allows the program to use it.
  case auto
  /// Real-time priority by any available privilege.
  case on
  /// No real-time priority of the program's own. A priority that the program was started with stays.
  case off
}

/// This is not a closure: a closure written where an actor is current traps on the new thread.
private func namedThreadMain(_ argument: UnsafeMutableRawPointer?) -> UnsafeMutableRawPointer? {
  if let argument { NamedThread.run(argument) }
  return nil
}
