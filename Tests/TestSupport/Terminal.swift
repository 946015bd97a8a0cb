import Foundation

/// A command that has run on a terminal of its own.
package struct Terminal: Decodable, Sendable {
  /// The exit status.
  package let status: Int
  /// The output that the terminal showed.
  package let shown: String
  /// The questions that the command did not ask.
  package let unasked: [[String]]

  /// Runs `command`, and answers its questions as a person would: `(text to wait for, answer)`, in their order.
  package static func run(
    _ command: [String], as prefix: [String] = [], answering questions: [(String, String)] = [],
    in directory: TemporaryDirectory, environment: [String: String] = [:]
  ) throws -> Terminal {
    let asked = try JSONEncoder().encode(questions.map { [$0.0, $0.1] })
    let script = "\(PageFaults.folder)/terminal.py"
    let result = try Subprocess.run(
      prefix + ["/usr/bin/python3", script, String(decoding: asked, as: UTF8.self)] + command, in: directory,
      environment: environment)
    return try JSONDecoder().decode(Terminal.self, from: result.output)
  }

  /// The QR code in it as a portable bitmap, of the blocks that each stand for two modules one above the other.
  package var code: String? {
    // Black on white, whatever the terminal's own colours are.
    let lines = shown.split(separator: "\n").filter { $0.hasPrefix("\u{1B}[30;107m") }.map { Array(Self.plain($0)) }
    guard let width = lines.map(\.count).max() else { return nil }
    let scale = 6
    var rows: [String] = []
    for line in lines {
      for half in ["█▀", "█▄"] {
        let row = (0..<width).map { $0 < line.count && half.contains(line[$0]) ? "1" : "0" }
        let dots = row.map { Array(repeating: $0, count: scale).joined(separator: " ") }.joined(separator: " ")
        rows += Array(repeating: dots, count: scale)
      }
    }
    return "P1\n\(width * scale) \(rows.count)\n" + rows.joined(separator: "\n") + "\n"
  }

  /// A line without what sets its colours.
  private static func plain(_ line: Substring) -> Substring { line.replacing(/\u{1B}\[[0-9;]*m/, with: "") }
}
