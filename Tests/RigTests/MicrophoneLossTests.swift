import Foundation
import TestSupport
import Testing

/// A sound card that goes and comes while listeners listen.
@Suite(.serialized, .enabled(if: Vivid.isHere)) struct MicrophoneLossTests {
  @Test(.enabled(if: runsLong, "takes a minute: make check-long"))
  func `a microphone that gives zeros for a minute is told, in the log, the health and the figures`() throws {
    let directory = try TemporaryDirectory()
    let stream = try LoggedStream(
      ["--source", "test", "--size", "320x240", "--fps", "5", "--audio", LoopbackCard.microphone], in: directory)
    #expect(stream.says("microphone: "), "\(stream.program.errorSoFar)")
    func sound() throws -> String? {
      let result = try Subprocess.run(
        ["curl", "-sS", "--unix-socket", stream.socket, "http://localhost/healthz"], in: directory)
      let health = try JSONSerialization.jsonObject(with: result.output) as? [String: Any]
      return (health?["cameras"] as? [[String: Any]])?.first?["sound"] as? String
    }
    #expect(try sound() == "present")
    #expect(stream.says("has recorded digital silence for 60 s", within: 200), "\(stream.program.errorSoFar)")
    #expect(try sound() == "silent")
    let metrics = try Subprocess.run(
      ["curl", "-sS", "--unix-socket", stream.socket, "http://localhost/metrics"], in: directory)
    let line = metrics.outputText.split(separator: "\n").first {
      $0.hasPrefix("nightjar_sound_digital_silence_seconds{")
    }
    #expect(line.flatMap { $0.split(separator: " ").last }.flatMap { Double($0) } ?? 0 >= 60, "\(line ?? "")")
    let player = try LoopbackCard.play(in: directory)
    defer { player.send(SIGKILL) }
    #expect(stream.says("records sound again, after "), "\(stream.program.errorSoFar)")
    #expect(try sound() == "present")
    _ = try stream.finish()
  }

  /// strace keeps the reading thread from waiting in time, so the card's memory is full before each reading: the kernel
  /// answers all of them with EPIPE.
  @Test(.enabled(if: runsLong, "takes half a minute: make check-long"))
  func `a card that loses samples at each reading is given up, and heard again once it is read in time`() throws {
    let directory = try TemporaryDirectory()
    let sound = try SoundLine()
    let stream = try LoggedStream(
      [
        "--source", "test", "--size", "320x240", "--fps", "5", "--audio", LoopbackCard.microphone, "--to",
        "rtp://127.0.0.1:\(try UDPPort.free())?audio=\(sound.port)",
      ], in: directory)
    let found = "microphone: \(LoopbackCard.microphone)"
    #expect(stream.says(found), "\(stream.program.errorSoFar)")
    let player = try LoopbackCard.play(in: directory)
    defer { player.send(SIGKILL) }
    func state() throws -> [String: Any] {
      let result = try Subprocess.run(
        [nightjarPath, "ctl", "--socket", stream.socket, "audio", "show", "--json"], in: directory)
      return try JSONSerialization.jsonObject(with: result.output) as? [String: Any] ?? [:]
    }
    func hears() -> Bool { (try? state()["peak_dbfs"] as? Double).map { abs($0 - LoopbackCard.peak) < 1 } ?? false }
    #expect(eventually(within: 100) { hears() })
    let before = try #require(try state()["overruns"] as? Int)
    let tracer = try Subprocess(
      [
        "strace", "-qq", "-o", directory.path("calls"), "-e", "trace=poll,ppoll", "-e",
        "inject=poll,ppoll:delay_enter=300000", "-p", "\(try #require(stream.thread("nj-card")))",
      ], in: directory)
    defer { tracer.send(SIGKILL) }
    #expect(
      stream.says("the sound device \(LoopbackCard.microphone) lost samples 21 times in a row"),
      "\(stream.program.errorSoFar) \(tracer.errorSoFar)")
    // The traced thread ends with its card; another one reads the next.
    #expect(stream.says(found, times: 2), "\(stream.program.errorSoFar)")
    #expect(eventually(within: 100) { hears() })
    let after = try state()
    #expect(after["losses"] as? Int == 1 && after["overruns"] as? Int ?? 0 >= before + 20, "\(after)")
    _ = try stream.finish()
    sound.end()
    #expect(sound.faults == [])
  }

  @Test func `unplugged and plugged in again and again, the line of sound has no gap and nothing leaks`() throws {
    let directory = try TemporaryDirectory()
    let cycles = runsLong ? 50 : 3
    let sound = try SoundLine()
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
      // Of the last tenth of a second, once that is over.
      #expect(eventually { (try? state()["peak_dbfs"] as? Double) == -100 }, "cycle \(cycle)")
      player.send(SIGKILL)
      _ = try player.wait(limit: 60)
      try LoopbackCard.plug("bind")
      #expect(eventually(within: 100) { (try? state()["present"] as? Bool) == true }, "cycle \(cycle)")
      memory.append(stream.residentKilobytes)
      // The card that was lost, and the question before, are closed a moment later.
      descriptors.append(stream.settledDescriptors(as: descriptors.first))
    }
    let player = try LoopbackCard.play(in: directory)
    defer { player.send(SIGKILL) }
    #expect(eventually(within: 100) { hears() })
    // A machine that is held up may lose the card besides, which the log tells.
    let log = stream.program.errorSoFar
    let lost = log.components(separatedBy: "viewers hear silence until the microphone is back: ").count - 1
    let losses = try #require(try state()["losses"] as? Int)
    let isHeldUp = stream.heartbeat.longestPause > 0.5 && losses > cycles && losses <= lost
    #expect(losses == cycles || isHeldUp, "\(losses): \(log)")
    _ = try stream.finish()
    sound.end()
    #expect(sound.packets.units.count > 10 * cycles && sound.faults == [])
    let steps = sound.packets.steps(since: 0)
    // Nothing new is kept. What was only reserved is touched in the first cycles: of 200 the last 130 took 48 kB more.
    #expect(memory[cycles - 1] - memory[cycles / 2] < (runsLong ? 1024 : 2048), "\(memory)")
    #expect(Set(descriptors).count == 1, "\(descriptors)")
    print(
      "microphone loss: \(cycles) cycles, \(sound.packets.units.count) packets, steps of \(steps.shortest) to \(steps.longest) s, "
        + "memory \(memory[cycles / 2])…\(memory[cycles - 1]) kB, descriptors \(descriptors[0])")
  }
}
