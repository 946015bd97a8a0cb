import Foundation
import Platform

/// A receiver of webhooks that is not ours: Python's http.server.
package final class WebhookServer {
  /// A request as the server has seen it.
  package struct Request: Decodable {
    /// The method, path with query, headers in lower case, and body.
    package let method: String
    package let path: String
    package let headers: [String: String]
    package let body: String
  }

  /// Its port at 127.0.0.1.
  package let port: Int
  /// The folder of its requests.
  package let directory: TemporaryDirectory
  private let process: Subprocess

  /// Starts a server that behaves so: see the script.
  package init(_ behaviour: String, certificate: [String] = []) throws {
    directory = try TemporaryDirectory()
    port = try TCPPort.free()
    process = try Subprocess(
      ["python3", Self.script, "\(port)", directory.url.path, behaviour] + certificate, in: directory)
    let process = process
    guard eventually(within: 60, { process.outputSoFar.contains("ready") }) else {
      throw SystemFailure("python3 \(behaviour): \(process.errorSoFar)", errorNumber: ETIMEDOUT)
    }
  }

  deinit { process.send(SIGKILL) }

  private static let script = packageRoot.appendingPathComponent("Tests/DeliveryTests/Servers/webhooks.py").path

  /// The connections that a server that hangs has accepted.
  package var connections: Int { process.outputSoFar.split(separator: "\n").count { $0 == "connection" } }

  /// The requests so far, in order.
  package func requests() throws -> [Request] {
    var requests: [Request] = []
    while let data = FileManager.default.contents(atPath: directory.path("\(requests.count + 1).json")) {
      requests.append(try JSONDecoder().decode(Request.self, from: data))
    }
    return requests
  }
}
