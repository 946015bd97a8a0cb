import Foundation
import TestSupport
import Testing

/// The program under connections that come and go, however they end.
@Suite struct ConnectionChurnTests {
  @Test func `connections leave no memory and no descriptors behind`() throws {
    let directory = try TemporaryDirectory()
    let port = try TCPPort.free()
    let program = try Subprocess(
      [
        nightjarPath, "stream", "--source", "test", "--size", "320x240", "--control", "none", "--rtsps",
        "127.0.0.1:\(port)",
      ], in: directory, environment: ["STATE_DIRECTORY": directory.path("state")])
    defer { program.send(SIGTERM) }
    try #require(eventually { !program.log.values(of: "rtsp").isEmpty }, "\(program.errorSoFar)")
    func churn(_ count: Int) throws {
      let result = try Subprocess.run(
        SecureServer.client + ["churn", "\(port)", "\(count)"], in: directory, limit: 600)
      try #require(result.outputText == "churned\n", "\(result.error)")
    }
    func resident() throws -> Int {
      let text = try KernelFile.text("/proc/\(program.identifier)/statm")
      return try #require(text.split(separator: " ").dropFirst().first.flatMap { Int($0) }) * 4
    }
    func descriptors() throws -> Int {
      try FileManager.default.contentsOfDirectory(atPath: "/proc/\(program.identifier)/fd").count
    }
    try churn(100)
    let before = (resident: try resident(), descriptors: try descriptors())
    let count = runsLong ? 10_000 : 300
    try churn(count)
    // A connection of OpenSSL's has some 20 KiB in the handshake; what the heap keeps in between does not add up.
    let growth = try resident() - before.resident
    #expect(growth < 4096, "\(growth) KiB more after \(count) connections")
    #expect(try eventually { try descriptors() <= before.descriptors })
    if runsLong { print("resident memory grew by \(growth) KiB over \(count) connections") }
  }
}
