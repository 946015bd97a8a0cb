import Appliance
import ArgumentParser
import Platform
import Streaming

/// The options for priority and processors of the threads that handle frames, and for their memory.
struct SchedulingOptions: ParsableArguments {
  @Option(
    name: .customLong("realtime"),
    help: ArgumentHelp(
      "Real-time priority for the capture and send threads: auto, on or off.",
      discussion: """
        auto takes it if the limit allows it (ulimit -r; the service has one). on takes it by any privilege, and warns \
        if there is none. The encoder never has it. A priority that the program was started with stays.
        """, valueName: "when"))
  var realTime = RealTimePriority.auto

  @Option(
    name: .customLong("cpus"),
    help: ArgumentHelp(
      "The processors for the camera's threads and its encoder: numbers and ranges, as in 2,3 or 0-1.",
      valueName: "list"))
  var processors: String?

  @Option(
    help: ArgumentHelp(
      "The part of the host's processors that --x264-preset auto may use, for all cameras and viewers (50%).",
      discussion: """
        Above it, nightjar takes a faster preset of x264 or x265, and makes no H.264 for viewers without HEVC. The load \
        of other programs does not count.
        """,
      valueName: "percent"))
  var cpuBudget: String?

  @Flag(
    name: .customLong("lock-memory"),
    help: ArgumentHelp(
      "Keep all memory in RAM once it was used.",
      discussion: "It needs unlimited locked memory (ulimit -l unlimited, or CAP_IPC_LOCK); the service has that."))
  var locksMemory = false

  @Option(
    name: .customLong("without"),
    help: ArgumentHelp(
      "Optimizations to switch off, separated by commas: \(Optimization.names).",
      discussion:
        "May be repeated. docs/performance.md tells what each one brings; make bench-ab measures it.",
      valueName: "list"))
  var withoutEach: [String] = []
}

extension RealTimePriority: ExpressibleByArgument {}

/// The options of the frame trace.
struct TraceOptions: ParsableArguments {
  @Option(
    name: .customLong("trace"),
    help: ArgumentHelp(
      "Write a trace of every frame to this file, for ui.perfetto.dev or chrome://tracing.",
      discussion: "The start replaces an existing file. Only the owner may read the file.", valueName: "file"))
  var path: String?

  @Option(
    name: .customLong("trace-limit"),
    help: ArgumentHelp(
      "The largest size of --trace, as in 500M or 2G. At that size the trace ends; the stream continues.",
      valueName: "bytes"))
  var limitGiven: String?
}
