import Synchronization

/// A sender of values to any number of subscribers, each with a buffer of its own. A subscriber that is slow loses its
/// oldest values, and delays nobody. Values that are numbered tell a subscriber of what it has lost
/// (``EncodedPicture/number``).
///
/// Any thread may send, and any task may subscribe. A value costs an allocation for each subscriber, so this is no part of
/// the frame path.
public final class Broadcast<Element: Sendable>: Sendable {
  /// The values that wait for a slow subscriber.
  public enum Buffering: Hashable, Sendable {
    /// The newest values, so many of them, and no more bytes than the broadcast allows. Older values are dropped.
    case newest(Int)
    /// All values: memory grows while the subscriber does not read.
    case all
  }

  private struct Subscriber: Sendable {
    weak var waiting: WaitingValues<Element>?
  }

  private struct State {
    var subscribers: [Subscriber] = []
    var hasEnded = false
    var dropped: UInt64 = 0
  }

  private let state = Mutex(State())
  private let byteLimit: Int
  private let weight: @Sendable (Element) -> Int

  /// Creates a broadcast without subscribers.
  ///
  /// - Parameters:
  ///   - byteLimit: The most bytes that wait for one subscriber. A single value may be larger.
  ///   - weight: Returns a value's bytes.
  public init(byteLimit: Int = .max, weight: @escaping @Sendable (Element) -> Int = { _ in 0 }) {
    (self.byteLimit, self.weight) = (byteLimit, weight)
  }

  deinit { finish() }

  /// The number of subscribers.
  public var subscriberCount: Int { state.withLock { $0.subscribers.count { $0.waiting != nil } } }

  /// The number of values that slow subscribers lost.
  public var dropped: UInt64 { state.withLock { $0.dropped } }

  /// Returns a stream of the values that are sent from now on. It ends with ``finish()``; after that, it is empty.
  public func stream(_ buffering: Buffering = .newest(1)) -> AsyncStream<Element> {
    let waiting =
      switch buffering {
      case .newest(let count): WaitingValues<Element>(countLimit: max(1, count), byteLimit: byteLimit)
      case .all: WaitingValues<Element>(countLimit: .max, byteLimit: .max)
      }
    state.withLock { state in
      if state.hasEnded { return waiting.finish() }
      // Weakly: whoever lets go of the stream has ended the subscription.
      state.subscribers.removeAll { $0.waiting == nil }
      state.subscribers.append(Subscriber(waiting: waiting))
    }
    return AsyncStream(unfolding: { await waiting.next() }, onCancel: { waiting.finish() })
  }

  /// Sends a value to every subscriber.
  public func send(_ value: Element) {
    // Not under the lock: a subscriber that ends meanwhile takes it too.
    let subscribers = state.withLock { $0.subscribers }
    let bytes = weight(value)
    let lost = subscribers.reduce(0) { $0 + ($1.waiting?.add(value, bytes: bytes) ?? 0) }
    guard lost > 0 else { return }
    state.withLock { $0.dropped += UInt64(lost) }
  }

  /// Ends every stream, once its subscriber has read the values that wait. Later values are ignored. Idempotent.
  public func finish() {
    let subscribers = state.withLock { state in
      defer { state.subscribers.removeAll() }
      state.hasEnded = true
      return state.subscribers
    }
    for subscriber in subscribers { subscriber.waiting?.finish() }
  }
}
