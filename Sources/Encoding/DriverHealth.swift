public import Media
package import Platform
import Synchronization

/// The hangs of one driver, shared by all encoders on it. After a hang no encoder calls the driver for 1, 2, 4, … 60 s.
/// Then a new thread opens a new connection. At most ``stuckLimit`` threads are stuck in the driver at a time.
public final class DriverHealth: Sendable {
  private struct State {
    /// The reason of the last hang.
    var reason: EncoderError?
    /// The time of the next permitted attempt.
    var nextAttempt = Instant.zero
    /// The wait before ``nextAttempt``.
    var retry = Duration.zero
    var backOff = RetryBackOff()
    /// The number of hangs so far; the next hang gets this number.
    var hangs = 0
    /// The numbers of the hangs whose threads have not returned.
    var stuck: Set<Int> = []
    /// The number of hangs that no statistics have counted yet.
    var uncounted = 0
    var isTold = false
  }
  private let state = Mutex(State())
  private let clock: @Sendable () -> Instant

  /// The maximum number of stuck threads. At this number no encoder calls the driver until one of them returns.
  public static let stuckLimit = 3

  /// Creates the record of a driver that has never hung.
  public convenience init() { self.init { .now() } }

  /// Creates the record of a driver that has never hung, with the given clock.
  ///
  /// - Parameter clock: A closure that returns the time, for the waits between attempts.
  package init(clock: @escaping @Sendable () -> Instant) { self.clock = clock }

  /// The reason why the driver must not be called now; nil while it may be called.
  public var reason: EncoderError? {
    let now = clock()
    return state.withLock { state in
      guard let reason = state.reason else { return nil }
      return now < state.nextAttempt || state.stuck.count >= Self.stuckLimit ? reason : nil
    }
  }

  /// The wait between the last hang and the next attempt; nil while ``stuckLimit`` threads are stuck.
  package var retryDelay: Duration? {
    state.withLock { $0.stuck.count >= Self.stuckLimit ? nil : $0.retry }
  }

  /// The number of hangs so far.
  package var hangs: Int { state.withLock { $0.hangs } }

  /// Returns `true` if a thread is stuck that hung after the connection was opened, when ``hangs`` was `opening`. A
  /// call by that connection might hang too.
  package func isStale(since opening: Int) -> Bool {
    state.withLock { state in state.stuck.contains { $0 >= opening } }
  }

  /// Records a hang after `worked` of work; returns its number.
  package func abandon(_ reason: EncoderError, after worked: Duration) -> Int {
    let now = clock()
    return state.withLock { state in
      defer { state.hangs += 1 }
      state.reason = reason
      state.retry = state.backOff.failed(after: worked)
      state.nextAttempt = now + state.retry
      state.stuck.insert(state.hangs)
      state.uncounted += 1
      state.isTold = false
      return state.hangs
    }
  }

  /// Postpones the next attempt because the system had no thread for it.
  func postpone() {
    let now = clock()
    state.withLock { state in
      state.retry = state.backOff.failed(after: .zero)
      state.nextAttempt = now + state.retry
    }
  }

  /// Returns the number of hangs since the last call, including those of encoders that are not live.
  package func takeHangs() -> Int {
    state.withLock { state in
      defer { state.uncounted = 0 }
      return state.uncounted
    }
  }

  /// Records that the thread of hang `number` returned and freed its encoder.
  package func comeBack(_ number: Int) {
    state.withLock { _ = $0.stuck.remove(number) }
  }

  /// Stops `encoder`. If another thread that hung in the driver after `opening` is still stuck, the encoder is never
  /// freed, because its end would block this thread too.
  ///
  /// - Parameters:
  ///   - opening: The value of ``hangs`` when the encoder was opened.
  ///   - own: The number of the hang of the encoder's own thread, if that thread was abandoned.
  func end(_ encoder: any StagedVideoEncoder, since opening: Int, own: Int?) {
    let isInTheWay = state.withLock { state in state.stuck.contains { $0 >= opening && $0 != own } }
    guard isInTheWay else { return encoder.stop() }
    // Never released: the release would end the encoder.
    _ = Unmanaged.passRetained(encoder as AnyObject)
  }

  /// Returns `true` once after each hang; the caller reports it.
  package func takeNotice() -> Bool {
    state.withLock { state in
      defer { state.isTold = true }
      return !state.isTold
    }
  }
}
