import Host
import Streaming

extension StreamSession {
  /// Begins to write the frame trace to `file`, until the end of the program.
  ///
  /// - Throws: ``ApplianceFailure`` if the file cannot be written, `SystemFailure`.
  func startTracing(to file: OutputFile) throws {
    trace = try TraceRecorder(try file.open(), limit: configuration.traceLimit)
    terminal.line(
      "trace      \(file.path), of at most \(configuration.traceLimit / 1_000_000) MB; open it at ui.perfetto.dev")
  }

  /// Tells the events of the trace since the last call.
  func tellTraceEvents() {
    for event in trace?.takeEvents() ?? [] { terminal.line(event.description, .warning, event: "trace") }
  }
}
