import Synchronization
import SystemService

/// What a camera has to say: among several its lines begin with its name, and in the journal they have fields that tell
/// whose they are.
final class CameraTerminal {
  /// The name among several cameras; nil for the only one.
  var name: String?
  /// The source's name and the encoder's, once they are known.
  var source: String?
  var encoder: String?
  private let terminal: Terminal

  init(_ terminal: Terminal, name: String?) {
    self.terminal = terminal
    self.name = name
  }

  /// Whether a person watches.
  var isInteractive: Bool { terminal.isInteractive }

  /// As ``Terminal/line(_:_:event:fields:)``.
  func line(_ text: String, _ level: LogLevel = .info, event: String? = nil) {
    terminal.line(prefixed(text), level, event: event, fields: fields)
  }

  /// As ``Terminal/warning(_:event:fields:)``.
  func warning(_ text: String, event: String? = nil) {
    terminal.warning(prefixed(text), event: event, fields: fields)
  }

  /// Tells what others have left.
  func tell(_ notes: Notes) {
    for note in notes.take() { terminal.tell(note.prefixed(name), fields: fields) }
  }

  private func prefixed(_ text: String) -> String { name.map { "\($0): \(text)" } ?? text }

  private var fields: [JournalField] {
    [("NIGHTJAR_CAMERA", name), ("CAMERA", source), ("ENCODER", encoder)]
      .compactMap { name, value in value.map { JournalField(name, $0) } }
  }
}

/// Lines from another thread to the one that has the terminal; those beyond ``limit`` are left out.
final class Notes: Sendable {
  /// A line for a person.
  struct Note {
    let text: String
    let level: LogLevel
    let event: String?

    fileprivate func prefixed(_ name: String?) -> Note {
      Note(text: name.map { "\($0): \(text)" } ?? text, level: level, event: event)
    }
  }

  private let waiting = Mutex<[Note]>([])
  static let limit = 32

  func add(_ text: String, _ level: LogLevel = .info, event: String? = nil) {
    waiting.withLock { if $0.count < Self.limit { $0.append(Note(text: text, level: level, event: event)) } }
  }

  /// A line that warns.
  func warn(_ text: String) { add(text, .warning) }

  /// What there is since the last call, oldest first.
  func take() -> [Note] {
    waiting.withLock { notes in
      defer { notes.removeAll() }
      return notes
    }
  }
}
