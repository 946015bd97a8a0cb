import FrameTracing
import Glibc
import SystemService

extension StreamSession {
  /// Begins to write the frames' way to `file`, until the end of the program.
  ///
  /// - Throws: ``CommandFailure`` where it cannot be written, `SystemFailure`.
  func startTracing(to file: OutputFile) throws {
    let descriptor = try file.open()
    do {
      trace = try TraceRecorder(descriptor: descriptor, limit: box.tracing.limit)
    } catch {
      close(descriptor)
      throw error
    }
    terminal.line("trace      \(file.path), of at most \(box.tracing.limit / 1_000_000) MB; open it at ui.perfetto.dev")
  }

  /// Tells what happened to the trace since the last call.
  func tellTraceEvents() {
    for event in trace?.takeEvents() ?? [] { terminal.line(event.description, .warning, event: "trace") }
  }
}
