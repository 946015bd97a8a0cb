import CLinux
import Glibc

/// An ``Interrupt`` that several objects share. It wakes one thread, any number of times.
package final class WakeUp: Sendable {
  private let interrupt: Interrupt

  /// Creates a wake-up that has not fired.
  ///
  /// - Throws: ``SystemFailure`` if the process has no descriptor left.
  package init() throws(SystemFailure) { interrupt = try Interrupt() }

  /// The descriptor to `poll` for `POLLIN`.
  package var fileDescriptor: CInt { interrupt.fileDescriptor }

  /// Wakes the thread. Any thread may call it.
  package func fire() { interrupt.fire() }

  /// Sleeps until the wake-up fires. May return early.
  package func wait() {
    var descriptor = pollfd(fd: fileDescriptor, events: Int16(POLLIN), revents: 0)
    _ = nightjar_poll(&descriptor, 1, -1)
  }

  /// Resets the interrupt. Check for the reasons of the wake-up after this call.
  package func clear() { interrupt.clear() }
}
