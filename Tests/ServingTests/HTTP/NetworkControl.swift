import Foundation
import TestSupport
import Testing

/// A control server that serves HTTPS too, to the user `alice` and the holder of a token, who may both do everything; and
/// curl, which asks it.
final class NetworkControl {
  static let password = "correct horse"

  let served: ServedControl
  let port: Int
  private(set) var token = ""

  /// - Parameter letsIn: whether there are a user and a token.
  init(
    letsIn: Bool = true, requestSeconds: Double = 60, connections: Int = 16, cameras: [String] = []
  ) throws {
    let directory = try TemporaryDirectory()
    if letsIn {
      token = try Self.makeToken("doorbell", in: directory)
      try Self.addUser("alice", Self.password, in: directory)
    }
    served = try ServedControl(
      requestSeconds: requestSeconds, connections: connections, cameras: cameras.isEmpty ? ["camera"] : cameras,
      in: directory, environment: ["CONTROL_HTTPS": directory.url.path])
    let process = served.process
    guard eventually({ process.outputSoFar.contains("listening\n") }),
      let line = process.outputSoFar.split(separator: "\n").first(where: { $0.hasPrefix("https ") }),
      let port = Int(line.dropFirst(6))
    else { throw ServedControl.Ended(output: process.outputSoFar) }
    self.port = port
  }

  static func makeToken(
    _ name: String, _ options: [String] = ["--role", "control"], in directory: TemporaryDirectory
  ) throws -> String {
    let result = try Subprocess.run(
      [nightjarPath, "token", "add", name, "--tokens", directory.path("tokens")] + options, in: directory)
    try #require(result.status == 0, "\(result.error)")
    return result.outputText.trimmingCharacters(in: .newlines)
  }

  static func addUser(
    _ name: String, _ password: String, role: String = "control", in directory: TemporaryDirectory
  ) throws {
    let result = try Subprocess.run(
      ["sh", "-c", "printf '%s\\n' \"$3\" | \"$0\" user add \"$1\" --users \"$2\" --role \"$4\"", nightjarPath, name]
        + [directory.path("users"), password, role], in: directory)
    try #require(result.status == 0, "\(result.error)")
  }

  /// Has users and tokens read again.
  func readAgain() throws {
    let process = served.process
    let before = process.outputSoFar.components(separatedBy: "read again").count
    process.send(SIGHUP)
    try #require(eventually { process.outputSoFar.components(separatedBy: "read again").count > before })
  }

  /// Asks by curl, which checks the certificate and its name.
  func curl(_ arguments: [String], _ route: String, limit: Int = 60) throws -> ServedControl.Answer {
    let directory = served.directory
    let body = directory.path("body-\(UUID().uuidString)")
    let result = try Subprocess.run(
      [
        "curl", "-sS", "--max-time", "\(limit)", "--cacert", directory.path("tls-identity.pem"), "-D",
        body + ".headers",
      ]
        + ["-w", "%{http_code}", "-o", body] + arguments + ["https://localhost:\(port)\(route)"], in: directory,
      limit: Double(limit) + 60)
    return ServedControl.Answer(
      status: Int(result.outputText) ?? -1, body: (try? String(contentsOfFile: body, encoding: .utf8)) ?? "",
      headers: (try? String(contentsOfFile: body + ".headers", encoding: .utf8)) ?? "", curl: result.status)
  }

  /// Asks by curl for a stream; see ``ServedControl/stream(_:in:until:)``.
  func stream(_ arguments: [String], _ route: String) throws -> ServedControl.Answer {
    let certificate = ["--cacert", served.directory.path("tls-identity.pem")]
    return try ServedControl.stream(
      certificate + arguments + ["https://localhost:\(port)\(route)"], in: served.directory, until: { _ in true })
  }

  var basic: [String] { ["-u", "alice:\(Self.password)"] }
  var bearer: [String] { ["-H", "Authorization: Bearer \(token)"] }

  /// Ends it; what it told after it began to listen.
  func finish() throws -> [String] {
    Array(try served.finish().drop { $0 != "listening" }.dropFirst())
  }
}
