import Appliance
import ArgumentParser
import FoundationEssentials
import Glibc
import Host
import Platform
import Serving

/// `nightjar discover`.
struct DiscoverCommand: ParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "discover",
    abstract: "List the streams announced on the network, and the commands that play them.",
    discussion: """
      It asks Avahi for _rtsp._tcp and _rtsps._tcp (DNS-SD): the cameras of nightjar stream --announce, and other \
      devices. Anybody on the network can announce anything: before you type a password, check that the address is \
      your host's.

      Exit codes: 0, also if none is found; 69 if Avahi does not run; 64 for wrong options.
      """)

  @Option(
    help: ArgumentHelp("The time to listen: 0.5 to 60 seconds.", valueName: "seconds"), transform: Self.seconds)
  var seconds = 3.0

  @Flag(help: "Print the list as JSON.")
  var json = false

  func run() throws {
    // A reader that has seen enough would otherwise end the program by a signal, silently.
    signal(SIGPIPE, SIG_IGN)
    try reportingFailures {
      let findings = try ServiceBrowser.browse(for: Duration(seconds: seconds))
      try writeOutput(json ? DiscoveredStreams(findings).json() : Self.text(findings))
      if findings.services.isEmpty, !json {
        writeError("a nightjar announces its cameras with: nightjar stream --rtsp --announce (or announce = true)\n")
      }
      if findings.isCut {
        writeError("more than \(ServiceBrowser.limit) announcements: the others are not shown\n")
      }
    }
  }

  private static func seconds(_ text: String) throws -> Double {
    guard let value = Double(text), (0.5...60).contains(value) else {
      throw ValidationError("choose 0.5 to 60 seconds")
    }
    return value
  }

  static func text(_ findings: ServiceBrowser.Findings) -> String {
    var lines: [String] = []
    for service in findings.services {
      let place = service.isLocal ? "this host" : TerminalText.escaped(service.host)
      lines.append("\(TerminalText.escaped(service.name))  (\(place))")
      lines.append("  \(service.url())\(service.asksForUser ? "  asks for a user: NAME and PASSWORD below" : "")")
      let url = ShellWord.quoted(service.url(login: service.asksForUser ? "NAME:PASSWORD@" : ""))
      let isEncrypted = service.type == .rtsps
      let commands = RTSPPlayerCommands.commands(for: url, isEncrypted: isEncrypted, isWithinConnection: false)
      for (player, command) in commands { lines.append("  \(player): \(command)") }
    }
    if findings.services.isEmpty { lines.append("no stream is announced on this network") }
    if findings.unresolved > 0 {
      let count = findings.unresolved
      lines.append("\(count) more \(count == 1 ? "is" : "are") announced, but sent no address in time")
    }
    return lines.joined(separator: "\n") + "\n"
  }
}

/// The streams that were found, for programs.
private struct DiscoveredStreams: Encodable {
  struct Stream: Encodable {
    struct Address: Encodable {
      let address: String
      let interface: String?
    }

    let name: String
    let type: String
    let host: String
    let port: Int
    let path: String
    let url: String
    let asksForUser: Bool
    let isLocal: Bool
    let addresses: [Address]
    let txt: [String]
  }

  let streams: [Stream]
  let unresolved: Int
  let isCut: Bool

  init(_ findings: ServiceBrowser.Findings) {
    streams = findings.services.map { service in
      Stream(
        name: service.name, type: service.type.rawValue, host: service.host, port: Int(service.port),
        path: service.path, url: service.url(), asksForUser: service.asksForUser, isLocal: service.isLocal,
        addresses: service.addresses.map { Stream.Address(address: $0.text, interface: $0.interface) },
        txt: service.txtRecord.texts)
    }
    (unresolved, isCut) = (findings.unresolved, findings.isCut)
  }

  /// Returns the JSON text with terminal control characters escaped: JSON itself leaves many of them as they are.
  func json() throws -> String {
    let encoder = JSONEncoder()
    encoder.keyEncodingStrategy = .convertToSnakeCase
    encoder.outputFormatting = [.prettyPrinted, .sortedKeys, .withoutEscapingSlashes]
    let text = String(decoding: try encoder.encode(self), as: UTF8.self)
    var result = ""
    for scalar in text.unicodeScalars {
      if scalar == "\n" || TerminalText.isHarmless(scalar) {
        result.unicodeScalars.append(scalar)
      } else {
        // Only strings contain such characters: JSON writes them in UTF-16 (RFC 8259 section 7).
        for unit in String(scalar).utf16 {
          let hex = String(unit, radix: 16)
          result += "\\u" + String(repeating: "0", count: 4 - hex.count) + hex
        }
      }
    }
    return result + "\n"
  }
}
