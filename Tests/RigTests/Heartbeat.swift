import Foundation
import Platform
import Synchronization
import Testing

/// A thread that does nothing but measure how long it is kept from running: a machine that is held up keeps the program from
/// running as long.
final class Heartbeat {
  private final class State: Sendable {
    let longest = Mutex(0.0)
    let isOver = Atomic(false)
  }

  private let state: State
  private let thread: NamedThread

  /// Begins to measure.
  init() throws {
    let state = State()
    self.state = state
    thread = try NamedThread("heartbeat") {
      var last = Instant.now()
      while !state.isOver.load(ordering: .relaxed) {
        usleep(50_000)
        let now = Instant.now()
        let pause = (now - last).seconds - 0.05
        state.longest.withLock { $0 = max($0, pause) }
        last = now
      }
    }
  }

  deinit { state.isOver.store(true, ordering: .relaxed) }

  /// Takes what came before for nothing.
  func forget() { state.longest.withLock { $0 = 0 } }

  /// The longest time so far that it was kept from running, in seconds.
  var longestPause: Double { state.longest.withLock { $0 } }

  /// The number of times that a log has lost its camera for want of pictures, which may happen only where the machine was held up.
  ///
  /// After such a pause either the wait for a picture ends first, or a picture comes, and before it the count of those that the
  /// driver has lost; and a camera may be just starting. Each has words of its own.
  func stalls(in log: String) -> Int {
    let count = log.matches(of: /no picture[^;\n]* for 2 seconds/).count
    #expect(count == 0 || longestPause > 0.5, "held up for \(longestPause) s: \(log)")
    return count
  }
}
