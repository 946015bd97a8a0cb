import Glibc
import Platform
import Synchronization

/// The processors that the program may use, for all cameras and viewers together, and the order in which streams change
/// because of them: one at a time, so that the next one sees what the change before it costs.
final class ProcessorBudget: Sendable {
  /// The number of processors, parts included.
  let processors: Double
  private let nextTurn = Mutex(Instant.zero)
  private let usage = Mutex(Usage())

  /// The use of processors in the last seconds.
  private struct Usage {
    /// The last reading; nil before the first.
    var last: (time: Instant, used: Duration)?
    /// The processors that were used between the last two readings, parts included; 0 before these.
    var processors = 0.0
  }

  /// The time for which a stream's change is judged before another stream changes.
  private static let pause = Duration(seconds: 6)
  /// The least time between two readings of the processor time.
  private static let interval = Duration(seconds: 3)

  /// Creates the budget of `share`, 0…1, of the host's processors.
  init(share: Double) {
    processors = share * Double(max(1, sysconf(CInt(_SC_NPROCESSORS_ONLN))))
  }

  /// Returns `true` if a stream may change at `now`; then no other may for some seconds. Any thread may call it.
  func claim(at now: Instant) -> Bool {
    nextTurn.withLock {
      guard now >= $0 else { return false }
      $0 = now + Self.pause
      return true
    }
  }

  /// The processors that the program may use beyond those that it used in the last seconds; less than 0 where it used too many.
  var room: Double { processors - usage.withLock { $0.processors } }

  /// Reads the processor time, every few seconds; called more often.
  func look(at now: Instant) {
    usage.withLock { usage in
      if let last = usage.last, now - last.time < Self.interval { return }
      let used = Self.used
      if let last = usage.last { usage.processors = (used - last.used).seconds / (now - last.time).seconds }
      usage.last = (now, used)
    }
  }

  /// The processor time that the process has used so far.
  static var used: Duration {
    var time = timespec()
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &time)
    return Duration(nanoseconds: Int64(time.tv_sec) * 1_000_000_000 + Int64(time.tv_nsec))
  }
}
