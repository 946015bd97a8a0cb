import Appliance
import ArgumentParser
import FoundationEssentials
import Glibc
import Platform

/// `nightjar doctor`.
struct DoctorCommand: ParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "doctor",
    abstract: "Find what keeps this host from streaming, and the commands that mend it.",
    discussion: """
      It checks the host and everything that the configuration asks for: cameras, the rate that they reach and who \
      uses them, microphones and their level, groups and permissions, VA-API, the encoder's speed, ports, users, \
      certificate, clock, heat, and nightjar.service. Each check prints one line, ok, warning or problem, and below it \
      the commands that mend it. The doctor changes nothing. It opens an unused camera, and an unused microphone, for \
      two seconds. If nightjar streams a camera already, the doctor asks that stream, which continues undisturbed.

      Examples:
        nightjar doctor
        sudo nightjar doctor --config /etc/nightjar/nightjar.toml
        nightjar doctor -- --source /dev/video2 --size 1920x1080
        nightjar doctor --json | jq '.findings[] | select(.status != "ok")'

      Exit codes: 0 without a problem, also with warnings; 1 with a problem; 64 for wrong options of nightjar doctor \
      itself. nightjar doctor --lines prints every possible line. docs/doctor.md, installed below share/doc/nightjar, \
      explains them.
      """)

  @Option(
    help: ArgumentHelp(
      "The configuration file, or none; the default is the file that nightjar stream reads.", valueName: "file"))
  var config: String?

  @Option(
    help: ArgumentHelp("The control socket of a running stream; the default is the usual one.", valueName: "path"))
  var socket: String?

  @Flag(help: "Print one JSON object: status, and findings with key, status, camera, text, mends, figures.")
  var json = false

  @Flag(help: "Print the table of all findings, and check nothing.")
  var lines = false

  @Argument(
    parsing: .postTerminator,
    help: ArgumentHelp("Options of nightjar stream to check.", valueName: "options"))
  var options: [String] = []

  func validate() throws {
    guard lines, json || config != nil || socket != nil || !options.isEmpty else { return }
    throw ValidationError("--lines checks nothing: leave the other options out")
  }

  func run() throws {
    // A reader that has seen enough would otherwise end the program by a signal, silently.
    signal(SIGPIPE, SIG_IGN)
    if lines { return try reportingFailures { try writeOutput(FindingKind.table) } }
    let display = FindingsDisplay(isJSON: json)
    Doctor(config: config, options: options, socket: socket, display: display) { arguments in
      do {
        return try StreamCommand.configuration(of: arguments)
      } catch let failure as any Failure {
        throw failure
      } catch {
        throw CommandLineError(description: Nightjar.message(for: error))
      }
    }.examine()
    try reportingFailures { try display.finish() }
    if display.worst == .problem { throw ExitCode(1) }
  }
}

/// Shows findings as they arrive, or all together as JSON.
final class FindingsDisplay: DoctorDisplay {
  private let terminal = Terminal()
  private let isJSON: Bool
  private var findings: [Finding] = []
  private var failure: (any Error)?

  init(isJSON: Bool) { self.isJSON = isJSON }

  /// The worst status so far.
  var worst: FindingStatus { findings.map(\.status).max() ?? .ok }

  /// Tells on a terminal which object is examined now.
  func looking(at what: String) { if !isJSON { terminal.live("looking at \(what)…") } }

  /// Shows one finding.
  func tell(_ finding: Finding) {
    findings.append(finding)
    guard !isJSON else { return }
    // Clears the live line, whether standard error or standard output is the terminal.
    terminal.live("")
    if terminal.isInteractive { writeError("\r") }
    do { try writeOutput(Self.text(finding)) } catch { failure = failure ?? error }
  }

  /// Ends the report: with a summary, or with all findings as JSON.
  ///
  /// - Throws: ``ApplianceFailure`` if standard output cannot be written.
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
