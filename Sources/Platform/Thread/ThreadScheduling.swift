import CLinux
import Glibc

/// The kernel's scheduling of a thread.
package struct ThreadScheduling: Hashable, Sendable {
  /// A scheduling policy (sched(7)).
  package enum Policy: String, Sendable {
    /// `SCHED_OTHER`: time sharing with all ordinary threads.
    case other
    /// `SCHED_FIFO`: real time.
    case fifo
    /// `SCHED_RR`: real time, round robin among threads of the same priority.
    case rr
    /// `SCHED_BATCH`.
    case batch
    /// `SCHED_IDLE`.
    case idle
    /// `SCHED_DEADLINE`: real time.
    case deadline
  }

  /// The thread's scheduling policy.
  package var policy: Policy
  /// The priority: 1 to 99 for real time, else 0.
  package var priority: Int
  /// The allowed delay of the thread's timers, in nanoseconds.
  package var timerSlack: Int
  /// The processors on which the thread may run.
  package var processors: ProcessorSet

  /// `true` if the thread has priority over ordinary threads.
  package var isRealTime: Bool { policy == .fifo || policy == .rr || policy == .deadline }

  /// Returns the calling thread's scheduling; nil where the kernel does not tell.
  package static func current() -> ThreadScheduling? {
    var scheduling = nightjar_scheduling()
    guard nightjar_thread_scheduling(&scheduling) == 0, let processors = ProcessorSet.ofThread() else { return nil }
    let policy: Policy =
      switch Int(scheduling.policy) {
      case nightjar_SCHED_FIFO: .fifo
      case nightjar_SCHED_RR: .rr
      case nightjar_SCHED_BATCH: .batch
      case nightjar_SCHED_IDLE: .idle
      case nightjar_SCHED_DEADLINE: .deadline
      default: .other
      }
    return ThreadScheduling(
      policy: policy, priority: Int(scheduling.priority), timerSlack: Int(scheduling.timer_slack),
      processors: processors)
  }
}

/// A set of processors by their numbers in the kernel.
package struct ProcessorSet: Hashable, Sendable, CustomStringConvertible {
  /// The numbers, ascending.
  package let numbers: [Int]

  /// The highest possible number.
  package static let highest = Int(nightjar_processor_limit) - 1

  /// Creates a set of `numbers`; nil for none, and for numbers beyond ``highest``.
  package init?(_ numbers: some Sequence<Int>) {
    let sorted = Set(numbers).sorted()
    guard let first = sorted.first, let last = sorted.last, first >= 0, last <= Self.highest else { return nil }
    self.numbers = sorted
  }

  /// Parses the syntax of `taskset`: `0-3,6`. Nil for any other text.
  package init?(text: String) {
    var numbers: Set<Int> = []
    guard text.utf8.count <= 1024 else { return nil }
    for part in text.split(separator: ",", omittingEmptySubsequences: false) {
      let ends = part.split(separator: "-", maxSplits: 1, omittingEmptySubsequences: false).map(Self.number)
      guard let first = ends[0], let last = ends[ends.count - 1], first <= last else { return nil }
      numbers.formUnion(first...last)
    }
    self.init(numbers)
  }

  private static func number(_ text: Substring) -> Int? {
    guard (1...5).contains(text.utf8.count), text.utf8.allSatisfy({ (0x30...0x39).contains($0) }) else { return nil }
    return Int(text).flatMap { $0 <= highest ? $0 : nil }
  }

  /// Returns the processors on which the calling thread may run; nil where the kernel does not tell.
  package static func ofThread() -> ProcessorSet? {
    var bits = nightjar_processors()
    guard nightjar_thread_processors(&bits) == 0 else { return nil }
    let numbers = withUnsafeBytes(of: &bits) { bytes in
      (0...highest).filter { bytes[$0 / 8] & 1 << ($0 % 8) != 0 }
    }
    return ProcessorSet(numbers)
  }

  /// Runs `body` on these processors only; every thread that it starts stays on them for good.
  ///
  /// - Throws: Any error of `body`. Where the kernel does not allow the restriction, `body` runs without it, and
  ///   ``ThreadScheduling`` shows that.
  package func confining<R: ~Copyable, E: Error>(_ body: () throws(E) -> R) throws(E) -> R {
    var former = nightjar_processors()
    let isKnown = nightjar_thread_processors(&former) == 0
    var wanted = nightjar_processors()
    withUnsafeMutableBytes(of: &wanted) { bytes in
      for number in numbers { bytes[number / 8] |= 1 << (number % 8) }
    }
    let isConfined = isKnown && nightjar_thread_set_processors(&wanted) == 0
    defer { if isConfined { _ = nightjar_thread_set_processors(&former) } }
    return try body()
  }

  /// The set as text: `0-3,6`.
  package var description: String {
    var ranges: [ClosedRange<Int>] = []
    for number in numbers {
      if let last = ranges.last, last.upperBound + 1 == number {
        ranges[ranges.count - 1] = last.lowerBound...number
      } else {
        ranges.append(number...number)
      }
    }
    return ranges.map { $0.count == 1 ? "\($0.lowerBound)" : "\($0.lowerBound)-\($0.upperBound)" }
      .joined(separator: ",")
  }
}
