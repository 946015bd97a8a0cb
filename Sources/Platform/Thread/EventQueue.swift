import Synchronization

/// A queue of events from the threads on which they happen to the thread that shows them, oldest first. The queue is
/// bounded: an event beyond the limit is dropped and appears in the counters only.
public final class EventQueue<Event: Sendable>: Sendable {
  private let waiting = Mutex<[Event]>([])
  private let limit: Int

  /// Creates an empty queue for at most `limit` events.
  public init(limit: Int = 64) { self.limit = limit }

  /// Adds `event`. Returns `false` if there is no room, and the event is dropped. Any thread may call it.
  @discardableResult
  public func add(_ event: Event) -> Bool {
    waiting.withLock { waiting in
      guard waiting.count < limit else { return false }
      waiting.append(event)
      return true
    }
  }

  /// Returns and removes the events since the last call.
  public func take() -> [Event] {
    waiting.withLock { waiting in
      defer { waiting.removeAll() }
      return waiting
    }
  }
}
