import Control
import Encoding
import Media
import RTSPServer
import Streaming
import SystemService

/// What happens to a stream, told in lines with their levels: whoever has something to say is asked in turn.
struct EventLog {
  let terminal: Terminal
  let pipeline: Pipeline
  let encoder: EncoderEvents?
  let guests: ServerEvents?
  let control: ControlEvents?
  let adaptation: StreamAdaptation?

  /// Tells what happened since the last call.
  func tell() {
    for event in encoder?.take() ?? [] {
      if case .recovered = event {
        terminal.line(event.description, event: "encoder")
      } else {
        terminal.line(event.description, .warning, event: "encoder")
      }
    }
    for event in guests?.take() ?? [] {
      terminal.line(event.description, event.isWarning ? .warning : .info, event: "viewer")
    }
    for event in control?.take() ?? [] {
      terminal.line(event.description, event.isWarning ? .warning : .info, event: "control")
    }
    for note in adaptation?.takeNotes() ?? [] {
      terminal.line(note.text, note.isWarning ? .warning : .info, event: "adaptation")
    }
    for event in pipeline.takeCameraEvents() {
      terminal.line(event.description, event.isWarning ? .warning : .info, event: "camera")
    }
  }
}
