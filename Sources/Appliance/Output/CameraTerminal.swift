import Host
import Platform
import Synchronization

/// The messages of one camera. With several cameras the lines begin with the camera's name, and in the journal they
/// have fields that tell the camera.
final class CameraTerminal {
  /// The name if there are several cameras; `nil` for the only one.
  var name: String?
  /// The names of the source and, in `encoder`, of the encoder, once they are known.
  var source: String?
  var encoder: String?
  private let terminal: Terminal

  init(_ terminal: Terminal, name: String?) {
    self.terminal = terminal
    self.name = name
  }

  /// `true` if a person watches the terminal.
  var isInteractive: Bool { terminal.isInteractive }

  /// Writes a line like ``Terminal/line(_:_:event:fields:)``.
  func line(_ text: String, _ level: LogLevel = .info, event: String? = nil) {
    terminal.line(prefixed(text), level, event: event, fields: fields)
  }

  /// Writes a warning like ``Terminal/warning(_:event:fields:)``.
  func warning(_ text: String, event: String? = nil) {
    terminal.warning(prefixed(text), event: event, fields: fields)
  }

  /// Writes the notes of other threads.
  func tell(_ notes: Notes) {
    for note in notes.take() { terminal.tell(note.prefixed(name), fields: fields) }
  }

  private func prefixed(_ text: String) -> String { name.map { "\($0): \(text)" } ?? text }

  private var fields: [JournalField] {
    [("NIGHTJAR_CAMERA", name), ("CAMERA", source), ("ENCODER", encoder)]
      .compactMap { name, value in value.map { JournalField(name, $0) } }
  }
}

/// A line for a person, from another thread.
struct Note: Sendable {
  let text: String
  let level: LogLevel
  let event: String?

  fileprivate func prefixed(_ name: String?) -> Note {
    Note(text: name.map { "\($0): \(text)" } ?? text, level: level, event: event)
  }
}

/// Lines on their way to the thread that owns the terminal.
typealias Notes = EventQueue<Note>

extension EventQueue<Note> {
  convenience init() { self.init(limit: 32) }

  func add(_ text: String, _ level: LogLevel = .info, event: String? = nil) {
    add(Note(text: text, level: level, event: event))
  }

  /// Adds a warning.
  func warn(_ text: String) { add(text, .warning) }
}
