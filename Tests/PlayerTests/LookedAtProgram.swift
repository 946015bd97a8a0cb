import Foundation
import TestSupport
import Testing

/// The program, serving pictures of the synthetic camera by `--http`.
final class LookedAtProgram {
  let directory: TemporaryDirectory
  let port: Int
  let address: String
  let process: Subprocess
  private let control: String

  /// Starts it and waits until it serves.
  ///
  /// - Parameter isDescribed: `true` for a session description of its destinations, in its directory.
  init(
    _ arguments: [String] = [], address: String = "127.0.0.1", users: [String: String] = [:], isDescribed: Bool = false
  ) throws {
    directory = try TemporaryDirectory()
    port = try TCPPort.free()
    self.address = address
    control = directory.path("control")
    var arguments = arguments + (try UsersFile.options(users, in: directory))
    if !arguments.contains("--source") { arguments += ["--source", "test", "--size", "320x240"] }
    if isDescribed { arguments += ["--sdp", directory.path("stream.sdp")] }
    process = try Subprocess(
      [nightjarPath, "stream", "--control", control, "--http", "\(address):\(port)"] + arguments, in: directory,
      environment: ["STATE_DIRECTORY": directory.path("state")])
    let process = process
    try #require(
      eventually(within: 120) { !process.log.values(of: "http").isEmpty || !process.isRunning } && process.isRunning,
      "\(process.errorSoFar)")
  }

  deinit {
    process.send(SIGTERM)
    _ = try? process.wait(limit: 30)
  }

  func url(_ path: String) -> String { "http://\(address):\(port)\(path)" }

  /// Asks by curl.
  func curl(_ arguments: [String], _ path: String, limit: Int = 60) throws -> (
    status: Int, body: Data, headers: String, exit: Int32
  ) {
    let body = directory.path("body-\(UUID().uuidString)")
    let result = try Subprocess.run(
      ["curl", "-sS", "--max-time", "\(limit)", "-D", body + ".headers", "-w", "%{http_code}", "-o", body] + arguments
        + [url(path)], in: directory)
    return (
      Int(result.outputText) ?? -1, (try? Data(contentsOf: URL(fileURLWithPath: body))) ?? Data(),
      ((try? String(contentsOfFile: body + ".headers", encoding: .utf8)) ?? "").lowercased(), result.status
    )
  }

  /// Runs `nightjar ctl`; what it says.
  func control(_ arguments: String...) throws -> String {
    let result = try Subprocess.run([nightjarPath, "ctl"] + arguments + ["--socket", control], in: directory)
    #expect(result.status == 0, "\(result.error)")
    return result.outputText
  }

  /// The camera's figures of pictures: `viewers`, `snapshot_viewers`, `coded`, `passed`, `skipped`.
  func pictures() throws -> [String: Int] {
    let text = try control("status", "--json", "--camera", "camera")
    let status = try #require(JSONSerialization.jsonObject(with: Data(text.utf8)) as? [String: Any])
    return try #require(status["pictures"] as? [String: Int])
  }

  /// The pixels of a JPEG, or of the last picture of what is in `file`, as ffmpeg decodes them.
  func pixels(_ file: String, width: Int, height: Int) throws -> [UInt8] {
    let raw = directory.path("raw-\(UUID().uuidString)")
    let result = try Subprocess.run(
      ["ffmpeg", "-nostdin", "-v", "error", "-xerror", "-i", file, "-pix_fmt", "rgb24", "-f", "rawvideo", raw],
      in: directory)
    #expect(result.status == 0 && result.error == "", "\(result.error)")
    let bytes = [UInt8](try Data(contentsOf: URL(fileURLWithPath: raw)))
    try #require(bytes.count >= width * height * 3 && bytes.count.isMultiple(of: width * height * 3))
    return bytes.suffix(width * height * 3)
  }
}

/// The synthetic camera's bars: 75 % colours, white to black (SMPTE RP 219), in R'G'B'.
enum KnownBars {
  static let colors: [[Int]] = [
    [191, 191, 191], [191, 191, 0], [0, 191, 191], [0, 191, 0], [191, 0, 191], [191, 0, 0], [0, 0, 191], [0, 0, 0],
  ]

  /// Expects them in a picture, along a line near the bottom, where nothing else is painted; or along a column near the
  /// left, as a quarter rotation places that line.
  static func expect(in rgb: [UInt8], width: Int, height: Int, isRotated: Bool = false) {
    for (bar, color) in colors.enumerated() {
      let (x, y) =
        isRotated
        ? (width / 20, (2 * bar + 1) * height / 16) : ((2 * bar + 1) * width / 16, height - 1 - height / 20)
      let found = (0..<3).map { Int(rgb[(y * width + x) * 3 + $0]) }
      #expect(zip(found, color).allSatisfy { abs($0 - $1) <= 8 }, "bar \(bar): \(found) instead of \(color)")
    }
  }
}
