import CLinux
import Glibc
public import Media

/// A lock with one condition, whose waits are on `CLOCK_MONOTONIC`.
///
/// The standard library's `Mutex` has no condition to wait for, and a stage that waits for a frame must sleep.
public struct Monitor: ~Copyable, @unchecked Sendable {
  // Sendable: both objects are made to be used by several threads, at an address that never moves.
  private let mutex: UnsafeMutablePointer<pthread_mutex_t>
  private let condition: UnsafeMutablePointer<pthread_cond_t>

  /// A lock that nobody holds.
  public init() {
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
  public borrowing func locked<R: ~Copyable, E: Error>(_ body: () throws(E) -> R) throws(E) -> R {
    pthread_mutex_lock(mutex)
    defer { pthread_mutex_unlock(mutex) }
    return try body()
  }

  /// Sleeps until `signal`, the lock being held by the caller and given up meanwhile. May return early.
  public borrowing func wait() {
    pthread_cond_wait(condition, mutex)
  }

  /// Sleeps until `signal` or until `deadline`; false once that has passed. May return early.
  public borrowing func wait(until deadline: MediaTime) -> Bool {
    let (whole, rest) = deadline.nanoseconds.quotientAndRemainder(dividingBy: 1_000_000_000)
    var time = timespec(tv_sec: Int(whole), tv_nsec: Int(rest))
    return pthread_cond_timedwait(condition, mutex, &time) != ETIMEDOUT
  }

  /// Wakes all who wait.
  public borrowing func signal() {
    pthread_cond_broadcast(condition)
  }
}
