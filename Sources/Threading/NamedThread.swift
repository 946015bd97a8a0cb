import CLinux
import Glibc
public import Media

/// A thread with a name, for a stage or a driver: blocking calls belong here and not on Swift's own thread pool.
///
/// Letting it go waits for its end.
public struct NamedThread: ~Copyable {
  private let thread: pthread_t

  /// Above ordinary threads, below those of the kernel that serve interrupts (50).
  private static let realTimePriority: CInt = 5

  /// How much it matters that the thread runs at once when there is something to do.
  public enum Urgency: Sendable {
    /// No more than for others.
    case ordinary
    /// Its timers are exact, and it takes its turn like others.
    case punctual
    /// Punctual, and with real-time priority as that says: for one that does little at a time, and must do it in time.
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
  ///   - urgency: how much it matters that it runs at once. What the system does not allow is left out.
  ///   - isPunctual: whether the kernel is to wake one that is urgent to the nanosecond; false for comparison.
  /// - Throws: ``SystemFailure`` where the system has no thread left.
  public init(
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

  /// Lets the thread go without waiting for its end: for one that is stuck in a driver.
  public consuming func detach() {
    pthread_detach(thread)
    discard self
  }

  fileprivate static func run(_ argument: UnsafeMutableRawPointer) {
    let entry = Unmanaged<Entry>.fromOpaque(argument).takeRetainedValue()
    // A name that is too long leaves the thread with its parent's: nothing depends on it.
    _ = nightjar_thread_set_name(entry.name)
    switch entry.urgency {
    case .ordinary: break
    case .punctual: if entry.isPunctual { nightjar_thread_be_punctual() }
    case .realTime(let wish):
      if entry.isPunctual { nightjar_thread_be_punctual() }
      // Mostly it is not allowed.
      if wish != .off { _ = nightjar_thread_raise(realTimePriority, wish == .on ? 1 : 0) }
    }
    entry.body()
  }
}

/// Whether threads that must be in time take real-time priority (`SCHED_RR`).
public enum RealTimePriority: String, Sendable, CaseIterable {
  /// Where the limit for it (`RLIMIT_RTPRIO`) says that this program is to.
  case auto
  /// By any privilege that there is.
  case on
  /// Not by themselves. What the program was started with stays.
  case off
}

/// Not a closure: one written where an actor is current traps on the new thread.
private func namedThreadMain(_ argument: UnsafeMutableRawPointer?) -> UnsafeMutableRawPointer? {
  if let argument { NamedThread.run(argument) }
  return nil
}
