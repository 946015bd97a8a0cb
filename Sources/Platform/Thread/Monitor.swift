import CLinux
import Glibc

/// A lock with one condition, whose waits are on `CLOCK_MONOTONIC`.
///
/// The standard library's `Mutex` has no condition variable, and a stage that waits for a frame must sleep.
package struct Monitor: ~Copyable, @unchecked Sendable {
  // Sendable: both objects are designed for use by several threads, at an address that never changes.
  private let mutex: UnsafeMutablePointer<pthread_mutex_t>
  private let condition: UnsafeMutablePointer<pthread_cond_t>

  /// Creates an unlocked monitor.
  package init() {
    mutex = .allocate(capacity: 1)
    condition = .allocate(capacity: 1)
    let results = (nightjar_mutex_init(mutex), nightjar_condition_init(condition))
    precondition(results == (0, 0), "a mutex and a condition can always be made")
  }

  deinit {
    pthread_cond_destroy(condition)
    pthread_mutex_destroy(mutex)
    condition.deallocate()
    mutex.deallocate()
  }

  /// Runs `body` with the lock held.
  package borrowing func locked<R: ~Copyable, E: Error>(_ body: () throws(E) -> R) throws(E) -> R {
    pthread_mutex_lock(mutex)
    defer { pthread_mutex_unlock(mutex) }
    return try body()
  }

  /// Sleeps until `signal`; the caller holds the lock, which is released meanwhile. May return early.
  package borrowing func wait() {
    pthread_cond_wait(condition, mutex)
  }

  /// Sleeps until `signal` or until `deadline`; returns `false` once that has passed. May return early.
  package borrowing func wait(until deadline: Instant) -> Bool {
    let (whole, rest) = deadline.nanoseconds.quotientAndRemainder(dividingBy: 1_000_000_000)
    var time = timespec(tv_sec: Int(whole), tv_nsec: Int(rest))
    return pthread_cond_timedwait(condition, mutex, &time) != ETIMEDOUT
  }

  /// Wakes all waiting threads.
  package borrowing func signal() {
    pthread_cond_broadcast(condition)
  }
}
