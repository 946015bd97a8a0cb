import Foundation
import TestSupport
import Testing

/// The program, serving the synthetic camera to browsers by `--https`.
final class WatchedProgram {
  let directory: TemporaryDirectory
  let process: Subprocess
  private let port: Int
  private let controlPath: String

  /// Starts it and waits until it serves.
  ///
  /// - Parameters:
  ///   - source: The camera, `test` or a path below the program's directory.
  ///   - encoder: The encoder.
  ///   - isOpen: whether other hosts reach it too.
  init(
    _ arguments: [String] = [], source: String = "test", encoder: String = "x264", users: [String: String] = [:],
    isOpen: Bool = false,
    environment: [String: String] = [:]
  ) throws {
    directory = try TemporaryDirectory()
    let camera = source == "test" ? source : directory.path(source)
    port = try TCPPort.free()
    controlPath = directory.path("control")
    let arguments = arguments + (try UsersFile.options(users, in: directory))
    process = try Subprocess(
      [
        nightjarPath, "stream", "--source", camera, "--size", "320x240", "--encoder", encoder, "--control", controlPath,
        "--https", isOpen ? ":\(port)" : "127.0.0.1:\(port)",
      ] + FullPictures.options + arguments, in: directory,
      environment: ["STATE_DIRECTORY": directory.path("state")].merging(environment) { $1 })
    let process = process
    try #require(
      eventually(within: 120) { !process.log.values(of: "https").isEmpty || !process.isRunning } && process.isRunning,
      "\(process.errorSoFar)")
  }

  deinit {
    process.send(SIGCONT)
    process.send(SIGTERM)
    _ = try? process.wait(limit: 30)
  }

  /// Waits for the camera's first picture: before it, the page's console has a 503.
  ///
  /// - Parameter login: curl's options with a log-in.
  func awaitPicture(_ login: [String] = []) {
    let isThere = eventually(within: 60) { (try? curl(login, "/healthz").status) == 200 }
    #expect(isThere, "\(process.errorSoFar)")
  }

  func url(_ path: String) -> String { "https://127.0.0.1:\(port)\(path)" }

  /// Runs `nightjar ctl`; what it says.
  func control(_ arguments: String...) throws -> String {
    let result = try Subprocess.run([nightjarPath, "ctl"] + arguments + ["--socket", controlPath], in: directory)
    #expect(result.status == 0, "\(result.error)")
    return result.outputText
  }

  /// The present viewers, without the destinations that nightjar sends to by itself.
  func viewers() throws -> [[String: Any]] {
    let list = try JSONSerialization.jsonObject(with: Data(control("viewers", "--json").utf8)) as? [String: Any]
    return (list?["viewers"] as? [[String: Any]] ?? []).filter { $0["guest"] as? Bool == true }
  }

  /// The kinds of the present viewers, such as `webrtc`.
  func viewerKinds() throws -> [String] { try viewers().compactMap { $0["kind"] as? String } }

  /// The last events, the oldest first.
  func events() throws -> [[String: Any]] {
    let list = try JSONSerialization.jsonObject(with: Data(control("events", "--json").utf8)) as? [String: Any]
    return list?["events"] as? [[String: Any]] ?? []
  }

  /// Asks by curl.
  func curl(_ arguments: [String], _ path: String) throws -> (status: Int, body: String, headers: HTTPFields) {
    let body = directory.path("body-\(UUID().uuidString)")
    let result = try Subprocess.run(
      ["curl", "-sSk", "--max-time", "60", "-D", body + ".headers", "-w", "%{http_code}", "-o", body] + arguments
        + [url(path)], in: directory)
    return (
      Int(result.outputText) ?? -1, (try? String(contentsOfFile: body, encoding: .utf8)) ?? "",
      HTTPFields(((try? String(contentsOfFile: body + ".headers", encoding: .utf8)) ?? "").lowercased())
    )
  }
}
