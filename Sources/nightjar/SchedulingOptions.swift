public import ArgumentParser
import CLinux
import Media
import Streaming
public import Threading

/// When and where the threads run that frames pass through.
struct SchedulingOptions: ParsableArguments {
  @Option(
    name: .customLong("realtime"),
    help: ArgumentHelp(
      "Real-time priority for capture and send: auto, on or off.",
      discussion: """
        auto takes it where the limit for it says so (ulimit -r; the service has one), on by any privilege that there is, and \
        warns where there is none. The encoder never has it. What the program was started with stays.
        """, valueName: "when"))
  var realTime = RealTimePriority.auto

  @Option(
    name: .customLong("cpus"),
    help: ArgumentHelp(
      "The processors that the camera's threads run on, its encoder's too: numbers and ranges, as in 2,3 or 0-1.",
      valueName: "list"),
    transform: OptionValues.processors)
  var processors: ProcessorSet?

  @Flag(
    name: .customLong("lock-memory"),
    help: ArgumentHelp(
      "Keep all memory from being swapped out, once it was used.",
      discussion: "There must be no limit to that (ulimit -l unlimited, or CAP_IPC_LOCK); the service has none."))
  var locksMemory = false

  @Option(
    name: .customLong("without"),
    help: ArgumentHelp(
      "What to do without, to see what it brings: of \(Optimization.names), with commas between them.",
      discussion:
        "May be given several times. docs/performance.md has what each one brings; make bench-ab measures it.",
      valueName: "list"),
    transform: OptionValues.optimizations)
  var withoutEach: [Set<Optimization>] = []

  /// What to do without.
  var without: Set<Optimization> { withoutEach.reduce(into: []) { $0.formUnion($1) } }

  mutating func validate() throws {
    if without.contains(.rtprio), realTime == .on {
      throw ValidationError("--without rtprio and --realtime on exclude each other")
    }
  }

  /// What is done about the memory of frames.
  var frameMemory: FrameMemory {
    FrameMemory(isKept: !without.contains(.pool), isLent: !without.contains(.zerocopy))
  }

  /// Runs `body` where the camera's threads are to run: those that it starts stay there.
  func confine<R>(_ body: () throws -> R) throws -> R {
    guard let processors else { return try body() }
    return try processors.confining(body)
  }

  /// Locks the process's memory where that is wanted.
  ///
  /// - Throws: ``CommandFailure`` with the limit, where there is one: memory beyond it could not be had any more.
  func lockMemory() throws {
    guard locksMemory else { return }
    let limit = nightjar_lockable_bytes()
    guard limit == .max else {
      throw CommandFailure(
        kind: .noPermission,
        description:
          "--lock-memory: this program may lock \(limit / 1024) KiB, and it must be unlimited: a line 'USER - memlock "
          + "unlimited' below /etc/security/limits.d, and log in anew; in a unit: LimitMEMLOCK=infinity")
    }
    let result = nightjar_lock_memory()
    guard result == 0 else { throw SystemFailure("mlockall", errorNumber: result) }
  }
}

extension RealTimePriority: ExpressibleByArgument {}

/// Where the frames' way is written down.
struct TraceOptions: ParsableArguments {
  @Option(
    name: .customLong("trace"),
    help: ArgumentHelp(
      "Write every frame's way to this file, for ui.perfetto.dev or chrome://tracing.",
      discussion: "A file that is there is replaced at the start. Only its owner may read it.", valueName: "file"))
  var path: String?

  @Option(
    name: .customLong("trace-limit"),
    help: ArgumentHelp(
      "The most bytes of --trace, as in 500M or 2G; recording ends there, and the stream goes on.", valueName: "bytes"),
    transform: { try OptionValues.bytes($0, within: 1_000_000...1_000_000_000_000, example: "500M or 2G") })
  var limitGiven: Int?

  /// The most bytes that are written: an hour and a half of a camera of 30 frames a second.
  var limit: Int { limitGiven ?? 256_000_000 }

  mutating func validate() throws {
    guard path != "", path != "-" else { throw ValidationError("--trace: name a file, which standard output is not") }
    guard limitGiven == nil || path != nil else { throw ValidationError("--trace-limit is for --trace only") }
  }
}
