import Glibc
package import Host
import Platform

/// Standard error, which a person reads: whole lines, and on a terminal one live line below them. If standard error
/// leads to systemd's journal, entries with level and fields.
package final class Terminal {
  /// `true` if a person watches. A pipe or the journal receives whole lines only.
  package let isInteractive = isatty(STDERR_FILENO) == 1
  private let journal = Journal()
  private var hasLiveLine = false

  package init() {}

  /// Writes a line, above the live line.
  ///
  /// - Parameters:
  ///   - event: the event in a word that stays the same: the field `NIGHTJAR_EVENT` in the journal.
  ///   - fields: further fields for the journal.
  package func line(_ text: String, _ level: LogLevel = .info, event: String? = nil, fields: [JournalField] = []) {
    if let journal {
      let fields = (event.map { [JournalField("NIGHTJAR_EVENT", $0)] } ?? []) + fields
      for line in text.split(separator: "\n") { journal.write(String(line), level, fields) }
      return
    }
    writeError((hasLiveLine ? "\r\u{1b}[K" : "") + text + "\n")
    hasLiveLine = false
  }

  /// Writes a warning; in the journal its level says so.
  package func warning(_ text: String, event: String? = nil, fields: [JournalField] = []) {
    line(journal == nil ? "warning    \(text)" : text, .warning, event: event, fields: fields)
  }

  /// Writes a note of another thread.
  func tell(_ note: Note, fields: [JournalField] = []) {
    switch note.level {
    case .warning: warning(note.text, event: note.event, fields: fields)
    default: line(note.text, note.level, event: note.event, fields: fields)
    }
  }

  /// Writes the notes of other threads.
  func tell(_ notes: Notes) { for note in notes.take() { tell(note) } }

  /// Writes the reason why the program ends.
  package static func failure(_ text: String) {
    if let journal = Journal() {
      journal.write(text, .error, [JournalField("NIGHTJAR_EVENT", "failed")])
    } else {
      writeError("nightjar: \(text)\n")
    }
  }

  /// Replaces the live line, cut to the terminal's width.
  package func live(_ text: String) {
    guard isInteractive else { return }
    var size = winsize()
    let width = ioctl(STDERR_FILENO, UInt(TIOCGWINSZ), &size) == 0 && size.ws_col > 0 ? Int(size.ws_col) : 80
    writeError("\r\(text.prefix(width - 1))\u{1b}[K")
    hasLiveLine = true
  }

  /// Ends the live line and leaves it on the terminal.
  package func finish() {
    if hasLiveLine { writeError("\n") }
    hasLiveLine = false
  }

  /// Returns a number with that many digits after the point.
  package static func decimal(_ value: Double, digits: Int) -> String {
    var factor = 1.0
    for _ in 0..<digits { factor *= 10 }
    guard value.isFinite, abs(value) < 1e15 else { return "-" }
    let scaled = Int((abs(value) * factor).rounded())
    let (whole, rest) = scaled.quotientAndRemainder(dividingBy: Int(factor))
    let sign = value < 0 && scaled != 0 ? "-" : ""
    guard digits > 0 else { return "\(sign)\(whole)" }
    let text = String(rest)
    return "\(sign)\(whole).\(String(repeating: "0", count: digits - text.count))\(text)"
  }

  /// Returns `2.50 Mbit/s`, `800 kbit/s`.
  package static func bitrate(_ bitsPerSecond: Double) -> String {
    bitsPerSecond >= 1e6
      ? "\(decimal(bitsPerSecond / 1e6, digits: 2)) Mbit/s" : "\(decimal(bitsPerSecond / 1e3, digits: 0)) kbit/s"
  }
}
