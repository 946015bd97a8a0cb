import Foundation
import TestSupport
import Testing

/// A sound card that goes and comes while listeners listen.
@Suite(.serialized, .enabled(if: Vivid.isHere)) struct MicrophoneLossTests {
  @Test func `unplugged and plugged in again and again, the line of sound has no gap and nothing leaks`() throws {
    let directory = try TemporaryDirectory()
    let cycles = runsLong ? 50 : 3
    let sound = try PacketLog(port: try UDPPort.free(), clockRate: 48_000)
    let stream = try LoggedStream(
      [
        "--source", "test", "--size", "320x240", "--fps", "5", "--audio", LoopbackCard.microphone, "--to",
        "rtp://127.0.0.1:\(try UDPPort.free())?audio=\(sound.port)",
      ], in: directory)
    #expect(stream.says("microphone: "), "\(stream.program.errorSoFar)")
    func state() throws -> [String: Any] {
      let result = try Subprocess.run(
        [nightjarPath, "ctl", "--socket", stream.socket, "audio", "show", "--json"], in: directory)
      return try JSONSerialization.jsonObject(with: result.output) as? [String: Any] ?? [:]
    }
    func hears() -> Bool {
      guard let peak = try? state()["peak_dbfs"] as? Double else { return false }
      return abs(peak - LoopbackCard.peak) < 1
    }
    var (memory, descriptors): ([Int], [Int]) = ([], [])
    for cycle in 0..<cycles {
      let player = try LoopbackCard.play(in: directory)
      #expect(eventually(within: 100) { hears() }, "cycle \(cycle): \(stream.program.errorSoFar)")
      try LoopbackCard.plug("unbind")
      #expect(eventually { (try? state()["present"] as? Bool) == false }, "cycle \(cycle)")
      #expect(try state()["peak_dbfs"] as? Double == -100)
      player.send(SIGKILL)
      _ = try player.wait(limit: 60)
      try LoopbackCard.plug("bind")
      #expect(eventually(within: 100) { (try? state()["present"] as? Bool) == true }, "cycle \(cycle)")
      memory.append(stream.residentKilobytes)
      descriptors.append(stream.descriptors)
    }
    let player = try LoopbackCard.play(in: directory)
    defer { player.send(SIGKILL) }
    #expect(eventually(within: 100) { hears() })
    #expect(try state()["losses"] as? Int == cycles)
    _ = try stream.finish()
    sound.end()
    #expect(sound.units.count > 10 * cycles && sound.sequenceGaps == 0 && sound.sourceCount == 1)
    // Silence takes the place of what is missing, so that the time goes on by 20 ms from packet to packet.
    let steps = sound.steps(since: 0)
    #expect(steps.shortest == 0.02 && steps.longest == 0.02, "\(steps)")
    // After the second cycle nothing new is kept.
    #expect(memory[cycles - 1] - memory[1] < 2048, "\(memory)")
    #expect(Set(descriptors).count == 1, "\(descriptors)")
    print(
      "microphone loss: \(cycles) cycles, \(sound.units.count) packets, steps of \(steps.shortest) to \(steps.longest) s, "
        + "memory \(memory[1])…\(memory[cycles - 1]) kB, descriptors \(descriptors[0])")
  }
}
