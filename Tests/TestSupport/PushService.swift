import Foundation
import Platform

/// A push service that is not ours, and the browser behind it, which decrypts what comes: Python's http.server and
/// cryptography.
package final class PushService {
  /// A request as the service has seen it.
  package struct Request: Decodable {
    /// The message that the browser has decrypted.
    package struct Message: Decodable {
      /// The alert that the message is about.
      package let id: UInt64
      package let kind: String
      package let state: String
      package let camera: String?
      package let time: String
      package let title: String
    }

    /// The path, the headers with names in lower case, and the length of the body.
    package let path: String
    package let headers: [String: String]
    package let length: Int
    /// The time of the request, in seconds since 1970.
    package let at: Double
    package let message: Message?
    /// The public key that has signed the token.
    package let key: String?
    /// The breaches of the standards.
    package let faults: [String]
  }

  /// The browser's subscription: JSON with `endpoint` and `keys`.
  package let subscription: String
  /// The file of its certificate in PEM.
  package let certificate: String
  private let directory: TemporaryDirectory
  private let process: Subprocess

  /// The script of the service, which also decrypts and verifies single messages.
  package static let script = packageRoot.appendingPathComponent("Tests/DeliveryTests/Servers/push.py").path

  /// Starts a service that answers so: see the script.
  package init(_ answers: String) throws {
    directory = try TemporaryDirectory()
    let identity = try Self.identity(for: "DNS:localhost", in: directory)
    certificate = identity[0]
    process = try Subprocess(
      ["python3", Self.script, "localhost", "\(try TCPPort.free())", directory.url.path, answers] + identity,
      in: directory)
    let process = process
    guard eventually(within: 60, { process.outputSoFar.contains("ready") }) else {
      throw SystemFailure("python3 \(answers): \(process.errorSoFar)", errorNumber: ETIMEDOUT)
    }
    subscription = String(process.outputSoFar.split(separator: "\n").first ?? "")
  }

  deinit { process.send(SIGKILL) }

  /// Makes a certificate for a name or an address, as in `DNS:localhost`; returns its file and that of its key.
  package static func identity(for subject: String, in directory: TemporaryDirectory) throws -> [String] {
    let paths = [directory.path("service.pem"), directory.path("service.key")]
    let made = try Subprocess.run(
      [
        "openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-days", "2",
        "-subj", "/CN=push", "-addext", "subjectAltName=\(subject)", "-out", paths[0], "-keyout", paths[1],
      ], in: directory)
    guard made.status == 0 else { throw SystemFailure("openssl: \(made.error)", errorNumber: EIO) }
    return paths
  }

  /// The requests so far, in order.
  package func requests() throws -> [Request] { try Self.requests(in: directory.url.path) }

  /// The requests that a service with this folder has had so far, in order.
  package static func requests(in folder: String) throws -> [Request] {
    var requests: [Request] = []
    while let data = FileManager.default.contents(atPath: "\(folder)/\(requests.count + 1).json") {
      requests.append(try JSONDecoder().decode(Request.self, from: data))
    }
    return requests
  }

  /// Asks the script `decrypt` or `verify`; what it says, without the end of its line.
  package static func judge(_ what: String, _ values: [String: String], in directory: TemporaryDirectory) throws
    -> String
  {
    let file = directory.path("\(what)-\(UUID().uuidString)")
    try JSONEncoder().encode(values).write(to: URL(fileURLWithPath: file))
    let judged = try Subprocess.run(["sh", "-c", #"exec python3 "$0" "$1" < "$2""#, script, what, file], in: directory)
    guard judged.status == 0 else { throw SystemFailure("python3: \(judged.error)", errorNumber: EIO) }
    return judged.outputText.trimmingCharacters(in: .newlines)
  }
}
