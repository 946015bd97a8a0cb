import Glibc
package import Platform
package import Streaming
import Synchronization

/// The processors that the program may use, for all cameras and viewers together, and the order in which streams change
/// because of them: one at a time, so that the next one sees what the change before it costs.
package final class ProcessorBudget: ProcessorRoom {
  /// The number of processors, parts included.
  let processors: Double
  private let nextTurn = Mutex(Instant.zero)
  private let usage: Mutex<Usage>
  private let clock: @Sendable () -> Instant
  private let readUsed: @Sendable () -> Duration

  /// The use of processors in the last seconds, and the encoders that it does not show yet.
  private struct Usage {
    /// The last reading; at first that of the budget's creation.
    var last: (time: Instant, used: Duration)
    /// The processors that were used between the last two readings, parts included; nil before the second one.
    var processors: Double?
    /// The grants whose use is not in ``processors``, or only a part of it.
    var grants: [Grant] = []
    /// The number of grants so far.
    var count = 0
  }

  private struct Grant {
    let number: Int
    let time: Instant
    let processors: Double
    /// The processors of the encoders before this one, which the readings still show.
    let former: Double
  }

  /// The time for which a stream's change is judged before another stream changes.
  private static let pause = Duration(seconds: 6)
  /// The least time between two readings of the processor time.
  private static let interval = Duration(seconds: 3)

  /// Creates the budget.
  ///
  /// - Parameters:
  ///   - share: the part of the host's processors that the program may use, 0…1.
  ///   - host: the number of the host's processors.
  ///   - clock: returns the time.
  ///   - used: returns the processor time that the process has used so far.
  package init(
    share: Double, of host: Int = ProcessorBudget.host, clock: @escaping @Sendable () -> Instant = { .now() },
    used: @escaping @Sendable () -> Duration = { ProcessorBudget.used }
  ) {
    processors = share * Double(host)
    (self.clock, readUsed) = (clock, used)
    usage = Mutex(Usage(last: (clock(), used())))
  }

  /// Returns `true` if a stream may change at `now`; then no other may for some seconds. Any thread may call it.
  func claim(at now: Instant) -> Bool {
    nextTurn.withLock {
      guard now >= $0 else { return false }
      $0 = now + Self.pause
      return true
    }
  }

  /// The processors that the program may use beyond those that it used in the last seconds and those that are granted since; less than
  /// 0 where it used too many. Any thread may call it.
  package var room: Double { usage.withLock { room(of: $0) } }

  /// Grants processors to an encoder. Any thread may call it.
  package func take(inPlaceOf former: ProcessorGrant?, _ choose: (_ room: Double) -> Double) -> ProcessorGrant {
    usage.withLock { usage in
      var freed = 0.0
      if let former {
        // The readings do not show a grant that still waits: they show the encoders that were before it.
        if let index = usage.grants.firstIndex(where: { $0.number == former.number }) {
          freed = usage.grants.remove(at: index).former
        } else {
          freed = former.processors
        }
      }
      let taken = choose(room(of: usage) + freed)
      usage.count += 1
      usage.grants.append(
        Grant(number: usage.count, time: clock(), processors: max(0, taken - freed), former: freed))
      return ProcessorGrant(number: usage.count, processors: taken)
    }
  }

  private func room(of usage: Usage) -> Double {
    let used = usage.processors ?? Self.processors(from: usage.last, to: (clock(), readUsed()))
    return usage.grants.reduce(processors - used) { $0 - $1.processors }
  }

  /// Reads the processor time, every few seconds; called more often.
  package func measure() {
    usage.withLock { usage in
      let (begin, now) = (usage.last.time, clock())
      guard now - begin >= Self.interval else { return }
      let reading = (time: now, used: readUsed())
      usage.processors = Self.processors(from: usage.last, to: reading)
      // An encoder that began before this interval shows in it with all of its use.
      usage.grants.removeAll { $0.time <= begin }
      usage.last = reading
    }
  }

  /// Returns the processors that were used between two readings; 0 where no time has passed.
  private static func processors(
    from first: (time: Instant, used: Duration), to last: (time: Instant, used: Duration)
  ) -> Double {
    let elapsed = (last.time - first.time).seconds
    return elapsed > 0 ? (last.used - first.used).seconds / elapsed : 0
  }

  /// The number of the host's processors.
  static var host: Int { max(1, sysconf(CInt(_SC_NPROCESSORS_ONLN))) }

  /// The processor time that the process has used so far.
  static var used: Duration {
    var time = timespec()
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &time)
    return Duration(nanoseconds: Int64(time.tv_sec) * 1_000_000_000 + Int64(time.tv_nsec))
  }
}
