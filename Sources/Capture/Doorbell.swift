import CLinux
import Glibc
import Media

/// A descriptor that becomes readable when somebody rings, until it is answered.
struct Doorbell: ~Copyable, Sendable {
  /// What to `poll` for `POLLIN`.
  let fileDescriptor: CInt

  /// One that nobody has rung.
  ///
  /// - Throws: ``SystemFailure`` where the process has no descriptor left.
  init() throws(SystemFailure) {
    let descriptor = nightjar_eventfd()
    guard descriptor >= 0 else { throw SystemFailure("eventfd") }
    fileDescriptor = descriptor
  }

  deinit {
    close(fileDescriptor)
  }

  /// Wakes whoever waits, now or later. From any thread.
  borrowing func ring() {
    var one: UInt64 = 1
    _ = write(fileDescriptor, &one, 8)
  }

  /// Makes it silent again.
  borrowing func answer() {
    var count: UInt64 = 0
    _ = read(fileDescriptor, &count, 8)
  }
}
