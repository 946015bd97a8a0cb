import Foundation
import TestSupport
import Testing

/// A broker of Servers/brokers.py.
final class HostileBroker {
  let port: Int
  private let directory: TemporaryDirectory
  private let process: Subprocess

  init(_ behaviour: String) throws {
    directory = try TemporaryDirectory()
    port = try TCPPort.free()
    let script = packageRoot.appendingPathComponent("Tests/DeliveryTests/Servers/brokers.py").path
    process = try Subprocess(["python3", script, "\(port)", behaviour], in: directory)
    let process = process
    try #require(eventually(within: 60) { process.outputSoFar.contains("ready") }, "\(process.errorSoFar)")
  }

  deinit { process.send(SIGKILL) }

  /// The number of connections that it has taken.
  var connections: Int { count("connection") }

  /// Returns the number of lines with this word.
  func count(_ word: String) -> Int { process.outputSoFar.split(separator: "\n").count { $0 == word } }
}
