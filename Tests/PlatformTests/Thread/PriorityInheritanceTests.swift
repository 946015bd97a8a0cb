import Dispatch
import Foundation
import Media
import Platform
import Synchronization
import TestSupport
import Testing

/// No real-time thread waits for an ordinary one that does not get a processor: each lock of the frame path lends its
/// holder the priority of who waits for it.
@Suite(.serialized) struct PriorityInheritanceTests {
  /// Threads at real-time priority by the kernel's own call, all on one processor.
  private static func become(_ priority: Int32) -> Bool {
    var parameters = sched_param()
    parameters.sched_priority = priority
    return pthread_setschedparam(pthread_self(), priority == 0 ? SCHED_OTHER : SCHED_FIFO, &parameters) == 0
  }

  private struct Course: Sendable {
    var isHeld = false
    var isOver = false
    var highIsHigh = false
    var highWaits = false
    var highHasIt: ContinuousClock.Instant?
    var mediumEnded: ContinuousClock.Instant?
  }

  private static func ownTime() -> Int {
    var time = timespec()
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time)
    return time.tv_nsec + time.tv_sec * 1_000_000_000
  }

  /// A thread of low priority holds the lock and has work to do; one of high priority waits for it; one of medium
  /// priority never stops meanwhile. Without inheritance the first would not run before the last has ended.
  ///
  /// - Parameter withLock: Runs its argument with the lock held.
  private func highGoesFirst(_ withLock: @escaping @Sendable (() -> Void) -> Void) throws -> Bool {
    let processor = try #require(ProcessorSet.ofThread().flatMap { ProcessorSet([$0.numbers[0]]) })
    final class Shared: Sendable {
      let course = Mutex(Course())
      let isRefused = Atomic(false)
      let mediumRuns = DispatchSemaphore(value: 0)
    }
    let shared = Shared()
    // Whoever still waits ends, since the release of a thread waits for its end.
    func end() {
      shared.course.withLock { $0.isOver = true }
      shared.mediumRuns.signal()
    }
    // Real-time threads have 95 % of each second at most: the one in the way and the work end before the rest of it comes. The
    // work is more than that rest, which a thread without priority may get. Both are times of a processor: a host that is late
    // with one takes nothing from either.
    let (inTheWay, work) = (600_000_000, 200_000_000)
    try processor.confining {
      let low = try NamedThread("nj-low") {
        withLock {
          shared.course.withLock { $0.isHeld = true }
          // Work, not sleep: it has to get the processor.
          while shared.course.withLock({ !$0.highWaits && !$0.isOver }), !shared.isRefused.load(ordering: .relaxed) {}
          let end = Self.ownTime() + work
          while Self.ownTime() < end {}
        }
      }
      defer { end() }
      guard eventually({ shared.course.withLock { $0.isHeld } }) else { return }
      let high = try NamedThread("nj-high") {
        guard Self.become(30) else { return shared.isRefused.store(true, ordering: .relaxed) }
        shared.course.withLock { $0.highIsHigh = true }
        shared.mediumRuns.wait()
        shared.course.withLock { $0.highWaits = true }
        withLock { shared.course.withLock { $0.highHasIt = .now } }
      }
      defer { end() }
      // Without its priority yet, it would wait for the end of what is in the way.
      guard eventually({ shared.course.withLock { $0.highIsHigh } || shared.isRefused.load(ordering: .relaxed) }) else {
        return
      }
      let medium = try NamedThread("nj-medium") {
        if !Self.become(20) { shared.isRefused.store(true, ordering: .relaxed) }
        // From here on it is in the way of all below: the one of high priority runs at once, until it waits for the lock.
        shared.mediumRuns.signal()
        let end = Self.ownTime() + inTheWay
        while Self.ownTime() < end {}
        shared.course.withLock { $0.mediumEnded = .now }
      }
      _ = consume low
      _ = consume high
      _ = consume medium
    }
    let isRefused = shared.isRefused.load(ordering: .relaxed)
    try #require(!isRefused)
    let now = shared.course.withLock { $0 }
    let (high, medium) = (try #require(now.highHasIt), try #require(now.mediumEnded))
    return high < medium
  }

  @Test(.enabled(if: SchedulingTests.givesRealTime)) func `a monitor lends its holder the priority`() throws {
    final class Shared: Sendable { let monitor = Monitor() }
    let shared = Shared()
    #expect(try highGoesFirst { body in shared.monitor.locked { body() } })
  }

  @Test(.enabled(if: SchedulingTests.givesRealTime)) func `the standard library's mutex does so too`() throws {
    final class Shared: Sendable { let mutex = Mutex(()) }
    let shared = Shared()
    #expect(try highGoesFirst { body in shared.mutex.withLock { _ in body() } })
  }

  /// The proof that the course of the two others proves anything.
  @Test(.enabled(if: SchedulingTests.givesRealTime)) func `a lock without inheritance does not`() throws {
    final class Shared: Sendable {
      // A lock that spins with pauses knows nobody's priority.
      let isHeld = Atomic(false)
    }
    let shared = Shared()
    #expect(
      try !highGoesFirst { body in
        while shared.isHeld.exchange(true, ordering: .acquiring) { usleep(1000) }
        body()
        shared.isHeld.store(false, ordering: .releasing)
      })
  }
}
