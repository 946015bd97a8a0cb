import CLinux
import Glibc
import Synchronization

/// A descriptor that is readable from `fire` on, until it is cleared: whoever waits in `poll` for a device waits for this
/// too, and so can be stopped or woken by another thread.
public struct Interrupt: ~Copyable, Sendable {
  /// What to `poll` for `POLLIN`.
  public let fileDescriptor: CInt
  /// The same for who only looks, which the frame path does with each picture: no system call.
  private let isFired = Atomic(false)

  /// A fresh one.
  ///
  /// - Throws: ``SystemFailure`` where the process has no descriptor left.
  public init() throws(SystemFailure) {
    let descriptor = nightjar_eventfd()
    guard descriptor >= 0 else { throw SystemFailure("eventfd") }
    fileDescriptor = descriptor
  }

  deinit {
    close(fileDescriptor)
  }

  /// Wakes every waiter, now and until it is cleared. Any thread may call it, and so may a signal handler.
  public borrowing func fire() {
    isFired.store(true, ordering: .releasing)
    var one: UInt64 = 1
    _ = write(fileDescriptor, &one, 8)
  }

  /// Forgets that `fire` was called; what it was called for is to be looked for after this.
  public borrowing func clear() {
    isFired.store(false, ordering: .relaxed)
    var count: UInt64 = 0
    _ = read(fileDescriptor, &count, 8)
  }

  /// Whether `fire` was called.
  public borrowing func hasFired() -> Bool {
    isFired.load(ordering: .acquiring)
  }

  /// Sleeps until `time` on `CLOCK_MONOTONIC`; false if interrupted before that.
  public borrowing func wait(until time: MediaTime) -> Bool {
    var descriptor = pollfd(fd: fileDescriptor, events: Int16(POLLIN), revents: 0)
    while true {
      let rest = max(0, (time - .now()).nanoseconds)
      let result = nightjar_poll(&descriptor, 1, rest)
      if result > 0 { return false }
      if result == 0, MediaTime.now() >= time { return true }
    }
  }
}

/// A system call that failed for a reason that has nothing to do with what was asked.
public struct SystemFailure: Failure {
  /// The system call, such as `poll`.
  public let call: String
  /// Its `errno`.
  public let errorNumber: CInt

  /// `call` failed with `errorNumber`, or with the thread's `errno` where none is given.
  public init(_ call: String, errorNumber: CInt? = nil) {
    self.errorNumber = errorNumber ?? errno
    self.call = call
  }

  /// One line for the person at the terminal.
  public var description: String { "\(call): \(Self.text(errorNumber))" }

  /// What kind of failure it is.
  public var kind: FailureKind { .system }

  /// The system's words for an `errno`.
  public static func text(_ errorNumber: CInt) -> String {
    withUnsafeTemporaryAllocation(of: CChar.self, capacity: 256) { buffer in
      guard let base = buffer.baseAddress, strerror_r(errorNumber, base, 256) == 0 else {
        return "error \(errorNumber)"
      }
      return String(cString: base)
    }
  }
}
