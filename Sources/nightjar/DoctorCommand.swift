import ArgumentParser
import Diagnosis
import FoundationEssentials
import Glibc
import Media

/// `nightjar doctor`.
struct DoctorCommand: ParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "doctor",
    abstract: "Look for what keeps this machine from streaming, and say what mends it.",
    discussion: """
      It looks at the machine and at all that the configuration asks for: cameras and the rate that they reach, who else \
      holds them, groups and permissions, VA-API, how fast the encoder is, ports, users, certificate, clock, heat, and \
      nightjar.service. Each is one line, ok, warning or problem, and below it the commands that mend it; nothing is \
      changed by itself. A camera that nobody uses is opened for two seconds; of one that nightjar streams already, that \
      stream is asked, and goes on undisturbed.

      Examples:
        nightjar doctor
        sudo nightjar doctor --config /etc/nightjar/nightjar.toml
        nightjar doctor -- --source /dev/video2 --size 1920x1080
        nightjar doctor --json | jq '.findings[] | select(.status != "ok")'

      Exit code: 0 where all is well or there are warnings only, 1 with a problem, 64 for wrong options of its own. \
      nightjar doctor --lines prints every line there may be; docs/doctor.md, installed below share/doc/nightjar, \
      explains them.
      """)

  @Option(
    help: ArgumentHelp(
      "The configuration file, or none; without it what nightjar stream would read.", valueName: "file"))
  var config: String?

  @Option(
    help: ArgumentHelp("The control socket of the stream that may run; without it the usual one.", valueName: "path"))
  var socket: String?

  @Flag(help: "Write all as one JSON object: status, and findings with key, status, camera, text, mends, figures.")
  var json = false

  @Flag(help: "Write a table of all that it can find, and look at nothing.")
  var lines = false

  @Argument(
    parsing: .postTerminator,
    help: ArgumentHelp("Options of nightjar stream that are to be looked at.", valueName: "options"))
  var options: [String] = []

  func validate() throws {
    guard lines, json || config != nil || socket != nil || !options.isEmpty else { return }
    throw ValidationError("--lines looks at nothing: leave the others out")
  }

  func run() throws {
    // A reader that has seen enough would end the program with a signal, and without a word otherwise.
    signal(SIGPIPE, SIG_IGN)
    if lines { return try reportingFailures { try writeOutput(FindingKind.table) } }
    let display = FindingsDisplay(isJSON: json)
    let doctor = Doctor(config: config, options: options, socket: socket, display: display)
    doctor.examine()
    try reportingFailures { try display.finish() }
    if display.worst == .problem { throw ExitCode(1) }
  }
}

/// Shows findings as they come, or all together as JSON.
final class FindingsDisplay {
  private let terminal = Terminal()
  private let isJSON: Bool
  private var findings: [Finding] = []
  private var failure: (any Error)?

  init(isJSON: Bool) { self.isJSON = isJSON }

  /// The worst so far.
  var worst: FindingStatus { findings.map(\.status).max() ?? .ok }

  /// Says on a terminal what is being looked at.
  func looking(at what: String) { if !isJSON { terminal.live("looking at \(what)…") } }

  /// Tells one.
  func tell(_ finding: Finding) {
    findings.append(finding)
    guard !isJSON else { return }
    // The line that tells what is being looked at goes away, whichever of both a terminal is.
    terminal.live("")
    if terminal.isInteractive { writeError("\r") }
    do { try writeOutput(Self.text(finding)) } catch { failure = failure ?? error }
  }

  /// Ends it: a summary, or all of it.
  ///
  /// - Throws: ``CommandFailure`` where standard output could not be written.
  func finish() throws {
    if let failure { throw failure }
    guard isJSON else {
      if terminal.isInteractive { terminal.live("") }
      let counts = FindingStatus.allCases.reversed().compactMap { status -> String? in
        let count = findings.count { $0.status == status }
        guard count > 0 else { return nil }
        return status == .ok ? "\(count) ok" : "\(count) \(status.rawValue)\(count == 1 ? "" : "s")"
      }
      return try writeOutput("\n\(counts.joined(separator: ", "))\n")
    }
    let encoder = JSONEncoder()
    encoder.outputFormatting = [.prettyPrinted, .sortedKeys, .withoutEscapingSlashes]
    // Only non-finite numbers could fail, and there are none.
    guard let data = try? encoder.encode(Document(status: worst.rawValue, findings: findings.map(Document.Entry.init)))
    else { return }
    try writeOutput(String(decoding: data, as: UTF8.self) + "\n")
  }

  private static func text(_ finding: Finding) -> String {
    let subject = finding.kind.subject + (finding.camera.map { " \($0)" } ?? "")
    var text = padded(finding.status.rawValue, 8) + " " + padded(subject, 16) + " " + finding.text + "\n"
    for mend in finding.mends {
      switch mend {
      case .command(let command): text += "           $ \(command)\n"
      case .advice(let advice): text += "             \(advice)\n"
      }
    }
    return text
  }

  private static func padded(_ text: String, _ width: Int) -> String {
    text + String(repeating: " ", count: max(0, width - text.count))
  }

  private struct Document: Encodable {
    struct Entry: Encodable {
      struct Mending: Encodable {
        var command: String?
        var advice: String?
      }

      let key: String
      let status: String
      let camera: String?
      let text: String
      let mends: [Mending]
      let figures: [String: Double]

      init(_ finding: Finding) {
        key = finding.kind.rawValue
        status = finding.status.rawValue
        camera = finding.camera
        text = finding.text
        mends = finding.mends.map { mend in
          switch mend {
          case .command(let command): Mending(command: command)
          case .advice(let advice): Mending(advice: advice)
          }
        }
        figures = finding.figures.filter(\.value.isFinite)
      }
    }

    let status: String
    let findings: [Entry]
  }
}
