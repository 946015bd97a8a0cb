import Synchronization

/// The events of a source that wait for the log. Any thread may use it.
final class SoundEventLog: Sendable {
  private let waiting = Mutex<[SoundEvent]>([])

  /// The most events that wait.
  private static let limit = 32

  /// Adds an event, where there is room.
  func note(_ event: SoundEvent) {
    waiting.withLock { if $0.count < Self.limit { $0.append(event) } }
  }

  /// Returns the events since the last call, oldest first.
  func takeAll() -> [SoundEvent] {
    waiting.withLock { events in
      defer { events.removeAll() }
      return events
    }
  }
}
