public import Media
import Synchronization

/// What is known of a driver by all who use it. After one of them waited for it in vain, none asks it for 1, 2, 4, … 60 s,
/// and then by a new connection on a new thread. At most ``stuckLimit`` threads are left in its hands at a time, however
/// many encoders there are on it.
public final class DriverHealth: Sendable {
  private struct State {
    /// Why it was left alone last.
    var reason: EncoderError?
    /// When it may be asked again.
    var nextAttempt = MediaTime.zero
    /// The wait before that.
    var retry = MediaTime.zero
    var backOff = RetryBackOff()
    /// How often it was waited for in vain, which numbers the next time.
    var hangs = 0
    /// The numbers of those whose threads are in its hands still.
    var stuck: Set<Int> = []
    /// How many waits in vain nobody has counted yet.
    var uncounted = 0
    var isTold = false
  }
  private let state = Mutex(State())
  private let clock: @Sendable () -> MediaTime

  /// The most threads that are left in a driver's hands before it is not asked any more, until one comes back.
  public static let stuckLimit = 3

  /// A driver that nobody waited for in vain.
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

  /// After how long it is asked again since it was waited for in vain last; nil where that is when one of the threads in
  /// its hands comes back.
  var retryDelay: MediaTime? {
    state.withLock { $0.stuck.count >= Self.stuckLimit ? nil : $0.retry }
  }

  /// How often it was waited for in vain: a connection that is opened now is not in the way of what hung before.
  var hangs: Int { state.withLock { $0.hangs } }

  /// Whether a thread is still in the driver's hands that got there since `opening`, which is the ``hangs`` of then: who
  /// has opened a connection before might wait for the same.
  func isStale(since opening: Int) -> Bool {
    state.withLock { state in state.stuck.contains { $0 >= opening } }
  }

  /// Notes that a thread was left behind in the driver's hands, after `worked` of work; its number.
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

  /// Notes that there was no thread to ask it again.
  func postpone() {
    let now = clock()
    state.withLock { state in
      state.retry = state.backOff.failed(after: .zero)
      state.nextAttempt = now + state.retry
    }
  }

  /// How often it was waited for in vain since the last call, by whomever: one whose encoder is not at work has nobody
  /// who counts.
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

  /// Whether the last wait in vain is to be told, which is true once.
  func takeNotice() -> Bool {
    state.withLock { state in
      defer { state.isTold = true }
      return !state.isTold
    }
  }
}
