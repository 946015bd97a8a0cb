import Foundation
import TestSupport
import Testing

/// A relay on the way from Chromium to the program's UDP port, which loses what a test says.
final class UDPRelay {
  /// The kind of loss.
  enum Loss: String {
    case nothing = ""
    case everything = "all"
    case video
    case audio
  }

  /// The port that browsers send to.
  let port: Int
  private let rules: String
  private let process: Subprocess

  /// Starts it in front of the server's `port` on loopback.
  init(to server: UInt16, in directory: TemporaryDirectory) throws {
    rules = directory.path("relay-rules")
    try Data().write(to: URL(fileURLWithPath: rules))
    process = try Subprocess(
      ["/usr/bin/python3", "\(PageFaults.folder)/udp-relay.py", "\(server)", rules], in: directory)
    let process = process
    try #require(eventually { process.outputSoFar.hasSuffix("\n") }, "\(process.errorSoFar)")
    port = try #require(Int(process.outputSoFar.dropLast()))
  }

  deinit { process.send(SIGKILL) }

  /// Loses `loss` from now on.
  func lose(_ loss: Loss) throws { try loss.rawValue.write(toFile: rules, atomically: true, encoding: .utf8) }
}
