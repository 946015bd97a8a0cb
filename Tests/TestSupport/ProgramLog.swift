/// The lines that the program writes to standard error if neither a terminal nor the journal reads it.
///
/// Among them are headings with their values (`rtsp       rtsp://…`), commands for a player (`  ffplay: …`), the reason of a
/// failure (`nightjar: …`), events, and the summary at the end.
package struct ProgramLog: Sendable {
  /// The whole lines, without a last line that does not end yet.
  package let lines: [String]

  /// The column where the value of a heading begins.
  private static let valueColumn = 11

  package init(_ text: String) {
    // By bytes: "\r\n" is one character.
    let bytes = text.utf8.split(separator: UInt8(ascii: "\n"), omittingEmptySubsequences: false)
    lines = bytes.dropLast().map { String(Substring($0)) }
  }

  /// Returns the values of a heading, such as `rtsp`, in their order. Spaces between the two may be more than usual, as
  /// in `nightjar ctl status`.
  package func values(of heading: String) -> [String] {
    let start = heading + String(repeating: " ", count: max(1, Self.valueColumn - heading.count))
    return lines.filter { $0.hasPrefix(start) }.map { String($0.dropFirst(start.count).drop { $0 == " " }) }
  }

  /// Returns the commands for a player, such as `ffplay`, in their order.
  package func commands(for player: String) -> [String] {
    let start = "  \(player): "
    return lines.filter { $0.hasPrefix(start) }.map { String($0.dropFirst(start.count)) }
  }

  /// The values of the lines with the heading `warning`. Other lines may warn too.
  package var warnings: [String] { values(of: "warning") }

  /// The reasons of failures.
  package var failures: [String] {
    lines.filter { $0.hasPrefix("nightjar: ") }.map { String($0.dropFirst("nightjar: ".count)) }
  }

  /// `true` if pictures flow from the only camera, or from one of several cameras.
  package var isStreaming: Bool { lines.contains { $0 == "streaming" || $0.hasSuffix(": streaming") } }

  /// Returns how many lines equal `line` from the first character to the last.
  package func count(of line: String) -> Int { lines.count { $0 == line } }
}

extension Subprocess {
  /// Standard error so far.
  package var log: ProgramLog { ProgramLog(errorSoFar) }
}

extension Subprocess.Result {
  /// Standard error.
  package var log: ProgramLog { ProgramLog(ended(error)) }

  /// Standard output, whose lines have the same form.
  package var listing: ProgramLog { ProgramLog(ended(outputText)) }

  /// Of a program that has ended, the last line is a line even without its end.
  private func ended(_ text: String) -> String {
    text.isEmpty || text.utf8.last == UInt8(ascii: "\n") ? text : text + "\n"
  }
}
