import CLinux
import Glibc
import Media

/// A thread with a name, for one stage: blocking calls belong here and not on Swift's own thread pool.
///
/// Letting it go waits for its end.
struct StageThread: ~Copyable {
  private let thread: pthread_t

  private final class Entry: Sendable {
    let name: String
    let body: @Sendable () -> Void
    init(name: String, body: @escaping @Sendable () -> Void) {
      self.name = name
      self.body = body
    }
  }

  /// Starts `body` on a thread called `name` (at most 15 bytes).
  ///
  /// - Throws: ``SystemFailure`` where the system has no thread left.
  init(_ name: String, _ body: @escaping @Sendable () -> Void) throws(SystemFailure) {
    var created = pthread_t()
    let entry = Unmanaged.passRetained(Entry(name: name, body: body))
    let result = pthread_create(&created, nil, stageThreadMain, entry.toOpaque())
    guard result == 0 else {
      entry.release()
      throw SystemFailure("pthread_create", errorNumber: result)
    }
    thread = created
  }

  deinit {
    pthread_join(thread, nil)
  }

  fileprivate static func run(_ argument: UnsafeMutableRawPointer) {
    let entry = Unmanaged<Entry>.fromOpaque(argument).takeRetainedValue()
    // A name that is too long leaves the thread with its parent's: nothing depends on it.
    _ = nightjar_thread_set_name(entry.name)
    entry.body()
  }
}

/// Not a closure: one written where an actor is current traps on the new thread.
private func stageThreadMain(_ argument: UnsafeMutableRawPointer?) -> UnsafeMutableRawPointer? {
  if let argument { StageThread.run(argument) }
  return nil
}
