import Foundation
import TestSupport
import Testing

/// Two cameras in one program, with the kernel's drivers of both.
@Suite(.serialized, .enabled(if: Vivid.isHere)) struct SeveralCamerasRigTests {
  @Test func `one camera is unplugged and plugged in again and again, and the other loses nothing`() throws {
    let directory = try TemporaryDirectory()
    let webcam = try UVCCamera(jpegs: ["640x360"], in: directory)
    let heartbeat = try Heartbeat()
    let (steady, moving) = (try PacketLog(port: UDPPort.free()), try PacketLog(port: UDPPort.free()))
    let file = directory.path("nightjar.toml")
    let text = """
      [[camera]]
      name = "steady"
      source = "\(try Vivid.node(0))"
      size = "640x360"
      to = "rtp://127.0.0.1:\(steady.port)"
      [[camera]]
      name = "moving"
      source = "\(try #require(webcam.node))"
      format = "mjpeg"
      size = "640x360"
      to = "rtp://127.0.0.1:\(moving.port)"
      """
    try Data(text.utf8).write(to: URL(fileURLWithPath: file))
    let program = try Subprocess(
      [nightjarPath, "stream", "--config", file, "--control", directory.path("control")], in: directory)
    func says(_ words: String, times: Int) -> Bool {
      eventually(within: 60) { program.errorSoFar.components(separatedBy: words).count > times }
    }
    #expect(says("steady: streaming", times: 1) && says("moving: streaming", times: 1), "\(program.errorSoFar)")
    let start = PacketLog.now()
    let cycles = runsLong ? 20 : 4
    /// The lines that tell of a camera's loss, for a reason.
    func losses(_ camera: String, _ reason: String = "") -> [String] {
      let end = "\(reason); nightjar streams a placeholder"
      return program.log.lines.filter { $0.hasPrefix("\(camera): camera lost: ") && $0.hasSuffix(end) }
    }
    for cycle in 1...cycles {
      try webcam.command("unplug")
      let isLost = eventually(within: 60) { losses("moving", ": the camera was unplugged").count >= cycle }
      try #require(isLost, "\(program.errorSoFar)")
      let returns = program.errorSoFar.components(separatedBy: "moving: camera is back after").count
      try webcam.command("plug")
      try #require(says("moving: camera is back after", times: returns), "\(program.errorSoFar)")
    }
    // A machine that is held up may lose a camera's pictures for two seconds, of either camera.
    let held = losses("steady")
    #expect(heartbeat.stalls(in: held.joined(separator: "\n")) == held.count, "\(program.errorSoFar)")
    let status = try Subprocess.run(
      [nightjarPath, "ctl", "status", "--json", "--socket", directory.path("control")], in: directory)
    let answer = try JSONSerialization.jsonObject(with: status.output) as? [String: Any]
    let cameras = answer?["cameras"] as? [[String: Any]] ?? []
    let frames = cameras.first?["frames"] as? [String: Any] ?? [:]
    program.send(SIGTERM)
    let result = try program.wait(limit: 60)
    for log in [steady, moving] { log.end() }
    #expect(result.status == 0, "\(result.error)")
    #expect(steady.sequenceGaps == 0 && steady.sourceCount == 1, "\(result.error)")
    #expect(moving.sequenceGaps == 0 && moving.sourceCount == 1, "\(result.error)")
    // Nothing but what a slow machine's driver leaves out by itself, or what it comes too late for.
    let causes = (frames["dropped_by_cause"] as? [String: Int] ?? [:]).filter { $0.value > 0 }
    #expect(Set(causes.keys).isSubset(of: ["driver", "capture_late", "encoder_late"]), "\(frames)")
    print("\(cycles) cycles in \(PacketLog.now() - start) s; the other camera's frames: \(frames)")
  }
}
