import Foundation
import TestSupport
import Testing

/// The strict test driver, which does something else while a program runs on it.
struct HeldDriver {
  let directory: TemporaryDirectory
  private var node: String { directory.path("node") }
  private var log: String { directory.path("violations") }

  init() throws {
    try #require(StrictVADriver.isBuilt)
    directory = try TemporaryDirectory()
    try Data().write(to: URL(fileURLWithPath: directory.path("node")))
  }

  /// Its complaints.
  var violations: [String] { StrictVADriver.violations(in: log) }

  /// Starts a stream of the synthetic camera on it, with one encoder there, which takes what is ordered: no standby is made for a
  /// rotated picture, which needs control, nor on a busy machine for a smaller one. With one quality level, no picture that is
  /// refused is sent again with another one.
  func stream(_ arguments: [String]) throws -> Subprocess {
    try Subprocess(
      [
        nightjarPath, "stream", "--source", "test", "--vaapi-device", node, "--size", "320x240", "--control", "none",
        "--no-load-adaptation", "--vaapi-quality", "4", "--sdp", directory.path("s.sdp"), "--stats-json",
        directory.path("s.json"),
      ] + arguments, in: directory,
      environment: StrictVADriver.environment(node: node, log: log, knobs: ["CONTROL": directory.path("knobs")])
        .merging(["STATE_DIRECTORY": directory.path("state")]) { $1 })
  }

  /// Has it do `knobs` from the next picture on.
  func order(_ knobs: String) throws {
    try Data(knobs.utf8).write(to: URL(fileURLWithPath: directory.path("knobs")), options: .atomic)
  }

  /// Ends the stream; the encoder's figures.
  func end(_ program: Subprocess) throws -> [String: Int] {
    program.send(SIGTERM)
    let result = try program.wait(limit: 60)
    #expect(result.status == 0, "\(result.error)")
    let json = try JSONSerialization.jsonObject(with: Data(contentsOf: URL(fileURLWithPath: directory.path("s.json"))))
    let encoder = (json as? [String: Any])?["encoder"] as? [String: Any] ?? [:]
    return encoder.compactMapValues { ($0 as? NSNumber)?.intValue }
  }
}
