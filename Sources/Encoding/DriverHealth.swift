public import Media
import Synchronization

/// The hangs of one driver, shared by all encoders on it. After a hang no encoder calls the driver for 1, 2, 4, … 60 s; then a
/// new thread opens a new connection. At most ``stuckLimit`` threads are stuck in the driver at a time.
public final class DriverHealth: Sendable {
  private struct State {
    /// Why it was left alone last.
    var reason: EncoderError?
    /// When it may be asked again.
    var nextAttempt = MediaTime.zero
    /// The wait before that.
    var retry = MediaTime.zero
    var backOff = RetryBackOff()
    /// How many hangs there were; the next hang gets this number.
    var hangs = 0
    /// The numbers of the hangs whose threads have not come back.
    var stuck: Set<Int> = []
    /// Hangs that no statistics have counted yet.
    var uncounted = 0
    var isTold = false
  }
  private let state = Mutex(State())
  private let clock: @Sendable () -> MediaTime

  /// The most threads that may be stuck in the driver; then no encoder calls it until one of them comes back.
  public static let stuckLimit = 3

  /// A driver that has never hung.
  public convenience init() { self.init { .now() } }

  /// - Parameter clock: what tells the time, for the waits between attempts.
  init(clock: @escaping @Sendable () -> MediaTime) { self.clock = clock }

  /// Why it is not spoken to now; nil while it is.
  public var reason: EncoderError? {
    let now = clock()
    return state.withLock { state in
      guard let reason = state.reason else { return nil }
      return now < state.nextAttempt || state.stuck.count >= Self.stuckLimit ? reason : nil
    }
  }

  /// The wait between the last hang and the next attempt; nil while ``stuckLimit`` threads are stuck.
  var retryDelay: MediaTime? {
    state.withLock { $0.stuck.count >= Self.stuckLimit ? nil : $0.retry }
  }

  /// How many hangs there were.
  var hangs: Int { state.withLock { $0.hangs } }

  /// Returns whether a thread is stuck that hung after a connection was opened, when ``hangs`` was `opening`: a call by that
  /// connection might hang too.
  func isStale(since opening: Int) -> Bool {
    state.withLock { state in state.stuck.contains { $0 >= opening } }
  }

  /// Notes a hang after `worked` of work; returns its number.
  func abandon(_ reason: EncoderError, after worked: MediaTime) -> Int {
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

  /// Notes that there was no thread for another attempt.
  func postpone() {
    let now = clock()
    state.withLock { state in
      state.retry = state.backOff.failed(after: .zero)
      state.nextAttempt = now + state.retry
    }
  }

  /// Returns the hangs since the last call, also those of an encoder that is not active.
  func takeHangs() -> Int {
    state.withLock { state in
      defer { state.uncounted = 0 }
      return state.uncounted
    }
  }

  /// Notes that the thread of that number came back, and that its encoder is freed.
  func comeBack(_ number: Int) {
    state.withLock { _ = $0.stuck.remove(number) }
  }

  /// Ends `encoder`. Where another thread is stuck in the driver since its `opening`, the encoder stays as it is, for good:
  /// its end would get this thread stuck too.
  ///
  /// - Parameters:
  ///   - opening: the ``hangs`` when it was opened.
  ///   - own: the number of its own thread, where that had been left behind.
  func end(_ encoder: any StagedVideoEncoder, since opening: Int, own: Int?) {
    let isInTheWay = state.withLock { state in state.stuck.contains { $0 >= opening && $0 != own } }
    guard isInTheWay else { return encoder.stop() }
    // Never let go: that would end it.
    _ = Unmanaged.passRetained(encoder as AnyObject)
  }

  /// Returns `true` once after each hang: the caller tells of it.
  func takeNotice() -> Bool {
    state.withLock { state in
      defer { state.isTold = true }
      return !state.isTold
    }
  }
}
