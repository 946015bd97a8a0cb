import Foundation

/// The health of a running program, by `/healthz`.
package struct Health {
  /// 200 or 503.
  package let status: Int
  /// The JSON with it.
  package let document: [String: Any]

  /// Asks by the control socket, by curl; nil where no answer comes.
  package init?(_ socket: String, path: String = "/healthz", in directory: TemporaryDirectory) throws {
    let result = try Subprocess.run(
      [
        "curl", "-sS", "--max-time", "60", "--unix-socket", socket, "-w", "%{http_code}", "http://localhost\(path)",
      ], in: directory)
    let lines = result.outputText.split(separator: "\n")
    guard lines.count == 2, let status = Int(lines[1]),
      let document = try JSONSerialization.jsonObject(with: Data(lines[0].utf8)) as? [String: Any]
    else { return nil }
    (self.status, self.document) = (status, document)
  }

  /// Of one camera: both in a word, as in `503 frozen`.
  package var summary: String { "\(status) \(document["state"] as? String ?? "")" }
}
