import CLinux
import Glibc
import Media
import Threading

/// Ends the program at a stop signal while the main thread is still starting, where it may wait for a pipe's writer, a
/// driver or a name server and looks at no signal.
///
/// Nothing may be left behind as long as it stands: no file is made before ``end()``.
struct StartGuard: ~Copyable {
  // In this order: the thread is waited for before the descriptor that it polls is closed.
  private let thread: NamedThread
  private let done: Interrupt

  /// Begins to watch `signals`, the descriptor of `nightjar_stop_signals`.
  ///
  /// - Parameter endsByHangup: whether SIGHUP is one of them, and does not ask for a reload, for which it is too early.
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
        // A signal that comes with the end is left for the main thread.
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
