import Synchronization

/// A signal that wakes tasks that wait for a condition. The thread that changes the condition announces it; any thread
/// may.
package final class ChangeSignal: Sendable {
  private let waiting = Mutex<[OneAnswer<Void>]>([])
  private let hasWaiters = Atomic(false)

  /// Creates a signal without waiting tasks.
  package init() {}

  /// Wakes every waiting task. Without one it costs a load, so that the frame path may call it for each picture.
  package func announce() {
    // The change before this comes before the load: a task that registers meanwhile sees one of both.
    atomicMemoryFence(ordering: .sequentiallyConsistent)
    guard hasWaiters.load(ordering: .relaxed) else { return }
    let woken = waiting.withLock { waiting in
      defer { waiting.removeAll() }
      hasWaiters.store(false, ordering: .relaxed)
      return waiting
    }
    for answer in woken { answer.give(.success(())) }
  }

  /// Returns the first value that `look` finds, now or after a change; nil at `deadline`, or when the task is
  /// cancelled.
  package func value<Value>(
    by deadline: Instant, isolation: isolated (any Actor)? = #isolation, _ look: () throws -> Value?
  ) async rethrows -> Value? {
    while !Task.isCancelled {
      // Registers before it looks, so that no change is missed in between.
      let answer = OneAnswer<Void>()
      waiting.withLock { waiting in
        waiting.append(answer)
        hasWaiters.store(true, ordering: .relaxed)
      }
      atomicMemoryFence(ordering: .sequentiallyConsistent)
      defer { waiting.withLock { waiting in waiting.removeAll { $0 === answer } } }
      if let value = try look() { return value }
      let rest = deadline - .now()
      guard rest > .zero else { return nil }
      let timer = Task {
        try? await Task.sleep(nanoseconds: UInt64(rest.nanoseconds))
        answer.give(.success(()))
      }
      defer { timer.cancel() }
      await withTaskCancellationHandler {
        try? await withCheckedThrowingContinuation { answer.wait($0) }
      } onCancel: {
        answer.give(.success(()))
      }
    }
    return nil
  }
}
