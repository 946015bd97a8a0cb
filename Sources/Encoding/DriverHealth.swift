public import Media
import Synchronization

/// What is known of a driver by all who use it: once one of them waited for it in vain, none asks it any more. So a
/// driver that hangs gets hold of one thread, however many encoders there are on it.
public final class DriverHealth: Sendable {
  private struct State {
    /// Why it is not spoken to any more.
    var reason: EncoderError?
    /// How many threads are in its hands that nobody waits for.
    var stuck = 0
    /// How many waits in vain nobody has counted yet.
    var uncounted = 0
    var isTold = false
  }
  private let state = Mutex(State())

  /// A driver that nobody waited for in vain.
  public init() {}

  /// Why it is not spoken to any more; nil while it is.
  public var reason: EncoderError? { state.withLock { $0.reason } }

  /// Notes that a thread was left behind in the driver's hands.
  func abandon(_ reason: EncoderError) {
    state.withLock { state in
      if state.reason == nil { state.reason = reason }
      state.stuck += 1
      state.uncounted += 1
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

  /// Notes that such a thread came back, and that its encoder is freed.
  func comeBack() {
    state.withLock { $0.stuck -= 1 }
  }

  /// Ends `encoder`, whose thread had been left behind itself or not. Where another thread is stuck in the driver, the
  /// encoder stays as it is, for good: its end would get this thread stuck too.
  func end(_ encoder: any StagedVideoEncoder, wasAbandoned: Bool) {
    guard state.withLock({ $0.stuck > (wasAbandoned ? 1 : 0) }) else { return encoder.stop() }
    // Never let go: that would end it.
    _ = Unmanaged.passRetained(encoder as AnyObject)
  }

  /// Whether the end of its use is to be told, which is true once.
  func takeNotice() -> Bool {
    state.withLock { state in
      defer { state.isTold = true }
      return !state.isTold
    }
  }
}
