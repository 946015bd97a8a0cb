import CLinux
import Glibc
import Platform

/// Ends the program at a stop signal while the main thread is still starting. During the start the main thread reads no
/// signal, and may wait for a pipe's writer, a driver or a name server.
///
/// While the guard is active, nothing exists that must be cleaned up: no file is created before ``end()``.
struct StartGuard: ~Copyable {
  // In this order: the thread is waited for before the descriptor that it polls is closed.
  private let thread: NamedThread
  private let done: Interrupt

  /// Begins to watch `signals`, the descriptor of `nightjar_stop_signals`.
  ///
  /// - Parameter endsByHangup: `true` if SIGHUP ends the program. Otherwise SIGHUP would request a reload, for which it
  ///   is too early.
  /// - Throws: ``SystemFailure``.
  init(signals: CInt, endsByHangup: Bool) throws(SystemFailure) {
    let done = try Interrupt()
    let doneDescriptor = done.fileDescriptor
    thread = try NamedThread("nj-start") {
      var descriptors = [
        pollfd(fd: signals, events: Int16(POLLIN), revents: 0),
        pollfd(fd: doneDescriptor, events: Int16(POLLIN), revents: 0),
      ]
      while true {
        _ = nightjar_poll(&descriptors, 2, -1)
        // A signal that arrives together with the end is left for the main thread.
        if descriptors[1].revents != 0 { return }
        if descriptors[0].revents != 0 {
          let signal = nightjar_next_signal(signals)
          if signal != 0, signal != SIGHUP || endsByHangup { nightjar_end_by_signal(signal) }
        }
      }
    }
    self.done = done
  }

  /// Leaves the signals to the main thread.
  consuming func end() {
    done.fire()
  }

  deinit {
    // Before the thread is waited for.
    done.fire()
  }
}
