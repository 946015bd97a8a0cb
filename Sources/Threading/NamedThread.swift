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

  private final class Entry: Sendable {
    let name: String
    let isUrgent: Bool
    let body: @Sendable () -> Void
    init(name: String, isUrgent: Bool, body: @escaping @Sendable () -> Void) {
      self.name = name
      self.isUrgent = isUrgent
      self.body = body
    }
  }

  /// Starts `body` on a thread called `name` (at most 15 bytes).
  ///
  /// - Parameter isUrgent: whether it takes real-time priority where the system allows that to this program: for one that
  ///   does little at a time, and must do it in time.
  /// - Throws: ``SystemFailure`` where the system has no thread left.
  public init(
    _ name: String, isUrgent: Bool = false, _ body: @escaping @Sendable () -> Void
  ) throws(SystemFailure) {
    var created = pthread_t()
    let entry = Unmanaged.passRetained(Entry(name: name, isUrgent: isUrgent, body: body))
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
    // Mostly it is not allowed.
    if entry.isUrgent { _ = nightjar_thread_raise(realTimePriority) }
    entry.body()
  }
}

/// Not a closure: one written where an actor is current traps on the new thread.
private func namedThreadMain(_ argument: UnsafeMutableRawPointer?) -> UnsafeMutableRawPointer? {
  if let argument { NamedThread.run(argument) }
  return nil
}
