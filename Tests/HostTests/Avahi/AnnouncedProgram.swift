import Foundation
import TestSupport
import Testing

/// `nightjar stream` on `boxa`, and what others see of it.
final class AnnouncedProgram {
  let hosts: AvahiHosts
  let process: Subprocess
  private let socket: String

  static let password = "correct horse"
  static let small = ["--source", "test", "--size", "320x240", "--fps", "10"]

  /// Starts it, with a user `anna` unless `users` is no.
  init(_ options: [String], on hosts: AvahiHosts, users: Bool = true) throws {
    self.hosts = hosts
    socket = hosts.directory.path("control.sock")
    var options = options
    if users {
      try Self.addUser(on: hosts)
      options += ["--users", hosts.directory.path("users")]
    }
    let variables = [
      "STATE_DIRECTORY": hosts.directory.path("state"), "XDG_CONFIG_HOME": hosts.directory.path("config"),
    ]
    process = try hosts.start(
      [nightjarPath, "stream", "--control", socket] + options, on: .boxa, environment: variables)
  }

  static func addUser(on hosts: AvahiHosts) throws {
    let words = "echo '\(password)' | '\(nightjarPath)' user add anna --users '\(hosts.directory.path("users"))'"
    let added = try Subprocess.run(["sh", "-c", words], in: hosts.directory)
    #expect(added.status == 0, "\(added.error)")
  }

  /// Returns a command that reads `frames` pictures of `url` and writes a line for each, which begins with `0,`.
  static func player(of url: String, frames: Int) -> [String] {
    [
      "ffmpeg", "-nostdin", "-v", "error", "-rtsp_transport", "tcp", "-i", url, "-frames:v", "\(frames)", "-f",
      "framecrc", "-",
    ]
  }

  var log: String { process.errorSoFar }

  func ctl(_ arguments: [String]) throws -> Subprocess.Result {
    try Subprocess.run([nightjarPath, "ctl"] + arguments + ["--socket", socket], in: hosts.directory)
  }

  /// Returns the announcements of its status.
  func announcements() throws -> [[String: Any]] {
    let answer = try ctl(["status", "--json"])
    let object = try JSONSerialization.jsonObject(with: answer.output) as? [String: Any]
    return object?["announcements"] as? [[String: Any]] ?? []
  }

  /// Asks for its end.
  func end() throws -> Subprocess.Result {
    process.send(SIGINT)
    return try process.wait(limit: 100)
  }
}

/// A service as `avahi-browse` sees it.
struct Seen: Hashable {
  let name: String
  let address: String
  let port: String
  let text: Set<String>

  /// Looks until Avahi has told all that it knows.
  static func services(_ type: String = "_rtsp._tcp", from host: AvahiHosts.Host, _ hosts: AvahiHosts) throws -> [Seen]
  {
    let result = try hosts.run(["avahi-browse", "-rpt", type], on: host, limit: 60)
    return result.outputText.split(separator: "\n").compactMap { line in
      // =;interface;protocol;name;type;domain;host;address;port;text
      let fields = line.split(separator: ";", maxSplits: 9, omittingEmptySubsequences: false).map(String.init)
      guard fields.count == 10, fields[0] == "=" else { return nil }
      let text = fields[9].split(separator: "\" \"").map { $0.trimmingCharacters(in: ["\""]) }
      return Seen(name: unescaped(fields[3]), address: fields[7], port: fields[8], text: Set(text))
    }
  }

  /// `camera\032on\032box` is "camera on box".
  private static func unescaped(_ name: String) -> String {
    var bytes: [UInt8] = []
    var rest = Array(name.utf8)[...]
    while let byte = rest.popFirst() {
      let digits = String(decoding: rest.prefix(3), as: UTF8.self)
      if byte == UInt8(ascii: "\\"), let value = UInt8(digits) {
        bytes.append(value)
        rest = rest.dropFirst(3)
      } else if byte == UInt8(ascii: "\\"), let next = rest.popFirst() {
        bytes.append(next)
      } else {
        bytes.append(byte)
      }
    }
    return String(decoding: bytes, as: UTF8.self)
  }
}
