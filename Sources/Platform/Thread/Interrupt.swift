import CLinux
import Glibc
import Synchronization

/// A descriptor that is readable after `fire` until it is cleared. A thread that polls a device polls it too, so that
/// another thread can stop or wake it.
public struct Interrupt: ~Copyable, Sendable {
  private let descriptor: FileDescriptor
  /// The descriptor to `poll` for `POLLIN`.
  public let fileDescriptor: CInt
  /// A copy of the state, readable without a system call, because the frame path reads it for each picture.
  private let isFired = Atomic(false)

  /// Creates an interrupt that has not fired.
  ///
  /// - Throws: ``SystemFailure`` where the process has no descriptor left.
  public init() throws(SystemFailure) {
    let made = try FileDescriptor(from: "eventfd", nightjar_eventfd)
    fileDescriptor = made.number
    descriptor = made
  }

  /// Wakes every waiter until the interrupt is cleared. Any thread may call it, and so may a signal handler.
  public borrowing func fire() {
    isFired.store(true, ordering: .releasing)
    var one: UInt64 = 1
    _ = write(fileDescriptor, &one, 8)
  }

  /// Clears the interrupt. The caller must look for the reason of the call to `fire` after this.
  public borrowing func clear() {
    isFired.store(false, ordering: .relaxed)
    var count: UInt64 = 0
    _ = read(fileDescriptor, &count, 8)
  }

  /// Returns `true` if `fire` was called.
  public borrowing func hasFired() -> Bool {
    isFired.load(ordering: .acquiring)
  }

  /// Sleeps until `time` on `CLOCK_MONOTONIC`; returns `false` if interrupted before.
  public borrowing func wait(until time: Instant) -> Bool {
    var descriptor = pollfd(fd: fileDescriptor, events: Int16(POLLIN), revents: 0)
    while true {
      let rest = max(0, (time - .now()).nanoseconds)
      let result = nightjar_poll(&descriptor, 1, rest)
      if result > 0 { return false }
      if result == 0, Instant.now() >= time { return true }
    }
  }
}
