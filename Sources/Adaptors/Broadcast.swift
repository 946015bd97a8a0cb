import Synchronization

/// A sender of values to any number of subscribers, each with a buffer of its own. A subscriber that is slow loses its
/// oldest values, and delays nobody.
///
/// Any thread may send, and any task may subscribe. A value costs an allocation for each subscriber, so this is no part of
/// the frame path.
public final class Broadcast<Element: Sendable>: Sendable {
  /// The values that wait for a slow subscriber.
  public enum Buffering: Hashable, Sendable {
    /// The newest values, so many of them. Older values are dropped.
    case newest(Int)
    /// All values: memory grows while the subscriber does not read.
    case all
  }

  private struct State {
    var subscribers: [UInt64: AsyncStream<Element>.Continuation] = [:]
    var nextIdentifier: UInt64 = 0
    var hasEnded = false
    var dropped: UInt64 = 0
  }

  private let state = Mutex(State())

  /// Creates a broadcast without subscribers.
  public init() {}

  deinit { finish() }

  /// The number of subscribers.
  public var subscriberCount: Int { state.withLock { $0.subscribers.count } }

  /// The number of values that slow subscribers lost.
  public var dropped: UInt64 { state.withLock { $0.dropped } }

  /// Returns a stream of the values that are sent from now on. It ends with ``finish()``; after that, it is empty.
  public func stream(_ buffering: Buffering = .newest(1)) -> AsyncStream<Element> {
    let policy: AsyncStream<Element>.Continuation.BufferingPolicy =
      switch buffering {
      case .newest(let count): .bufferingNewest(max(1, count))
      case .all: .unbounded
      }
    let (stream, continuation) = AsyncStream.makeStream(of: Element.self, bufferingPolicy: policy)
    let identifier = state.withLock { state -> UInt64? in
      guard !state.hasEnded else { return nil }
      defer { state.nextIdentifier += 1 }
      state.subscribers[state.nextIdentifier] = continuation
      return state.nextIdentifier
    }
    guard let identifier else {
      continuation.finish()
      return stream
    }
    continuation.onTermination = { [weak self] _ in
      self?.state.withLock { _ = $0.subscribers.removeValue(forKey: identifier) }
    }
    return stream
  }

  /// Sends a value to every subscriber.
  public func send(_ value: Element) {
    // Not under the lock: a subscriber that ends meanwhile takes it too.
    let subscribers = state.withLock { $0.subscribers.values.map(\.self) }
    var lost: UInt64 = 0
    for subscriber in subscribers {
      if case .dropped = subscriber.yield(value) { lost += 1 }
    }
    guard lost > 0 else { return }
    state.withLock { $0.dropped += lost }
  }

  /// Ends every stream, once its subscriber has read the values that wait. Later values are ignored. Idempotent.
  public func finish() {
    let subscribers = state.withLock { state in
      defer { state.subscribers.removeAll() }
      state.hasEnded = true
      return Array(state.subscribers.values)
    }
    for subscriber in subscribers { subscriber.finish() }
  }
}
