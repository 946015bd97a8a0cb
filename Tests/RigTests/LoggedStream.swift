import Foundation
import TestSupport
import Testing

/// The program streaming to a ``PacketLog``.
final class LoggedStream {
  let program: Subprocess
  let packets: PacketLog
  let heartbeat: Heartbeat
  let socket: String
  private let directory: TemporaryDirectory
  let figures: String

  /// Starts it.
  ///
  /// - Parameter environment: settings of its environment, as in `A=B`.
  init(_ arguments: [String], in directory: TemporaryDirectory, environment: [String] = []) throws {
    self.directory = directory
    heartbeat = try Heartbeat()
    packets = try PacketLog(port: try UDPPort.free())
    socket = directory.path("control")
    figures = directory.path("figures.json")
    program = try Subprocess(
      environment + [
        nightjarPath, "stream", "--control", socket, "--to", "rtp://127.0.0.1:\(packets.port)", "--sdp",
        directory.path("s.sdp"), "--stats-json", figures,
      ] + arguments, in: directory)
  }

  /// The `camera` of its status.
  var camera: [String: Any] {
    let result = try? Subprocess.run([nightjarPath, "ctl", "--socket", socket, "status", "--json"], in: directory)
    let status = result.flatMap { try? JSONSerialization.jsonObject(with: $0.output) as? [String: Any] }
    return (status?["cameras"] as? [[String: Any]])?.first?["camera"] as? [String: Any] ?? [:]
  }

  var state: String { camera["state"] as? String ?? "" }

  /// Its health by `/healthz`, as in `503 frozen`.
  var health: String {
    (try? Health(socket, path: "/cameras/camera/healthz", in: directory))?.summary ?? ""
  }

  /// Waits for a line.
  func says(_ words: String, times: Int = 1, within limit: Double = 60) -> Bool {
    eventually(within: limit) { program.errorSoFar.components(separatedBy: words).count > times }
  }

  /// The number of times that it has lost its camera because the machine was held up.
  var stalls: Int { heartbeat.stalls(in: program.errorSoFar) }

  /// Ends it; its figures.
  func finish() throws -> [String: Any] {
    program.send(SIGTERM)
    let result = try program.wait(limit: 60)
    packets.end()
    #expect(result.status == 0, "\(result.error)")
    let data = try Data(contentsOf: URL(fileURLWithPath: figures))
    return try JSONSerialization.jsonObject(with: data) as? [String: Any] ?? [:]
  }

  var residentKilobytes: Int {
    let status = (try? KernelFile.text("/proc/\(program.identifier)/status")) ?? ""
    let line = status.split(separator: "\n").first { $0.hasPrefix("VmRSS:") } ?? ""
    return Int(line.split(whereSeparator: { $0 == " " || $0 == "\t" }).dropFirst().first ?? "") ?? 0
  }

  /// The number of its thread of that name; nil for none.
  func thread(_ name: String) -> Int? {
    let folder = "/proc/\(program.identifier)/task"
    let threads = (try? FileManager.default.contentsOfDirectory(atPath: folder)) ?? []
    return threads.first { (try? String(contentsOfFile: "\(folder)/\($0)/comm", encoding: .utf8)) == name + "\n" }
      .flatMap { Int($0) }
  }

  private var descriptors: Int {
    ((try? FileManager.default.contentsOfDirectory(atPath: "/proc/\(program.identifier)/fd")) ?? []).count
  }

  /// The number of its descriptors once what it had open for a moment only is closed, such as that of a question: waits until
  /// there are as many as `before`; without that, it is the least of a second.
  func settledDescriptors(as before: Int?) -> Int {
    if let before { return eventually { descriptors == before } ? before : descriptors }
    var least = descriptors
    // In pieces, so that a machine that is held up takes one of them, not all.
    for _ in 0..<20 {
      usleep(50_000)
      least = min(least, descriptors)
    }
    return least
  }
}
