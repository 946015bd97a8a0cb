import Foundation
import TestSupport
import Testing

/// A stream whose camera is not there yet.
@Suite struct WaitingTests {
  @Test(arguments: [[], ["--audio", "none"]])
  func `the stream has sound for the microphone of the camera that it waits for`(options: [String]) throws {
    let directory = try TemporaryDirectory()
    let (port, socket) = (try UDPPort.free(), directory.path("control"))
    let program = try Subprocess(
      [
        nightjarPath, "stream", "--source", directory.path("camera"), "--wait", "--size", "320x240", "--control",
        socket,
        "--to", "rtp://127.0.0.1:\(port)",
      ] + options, in: directory)
    defer { program.send(SIGTERM) }
    func sound() throws -> Subprocess.Result {
      try Subprocess.run([nightjarPath, "ctl", "audio", "show", "--json", "--socket", socket], in: directory)
    }
    #expect(try eventually { try [0, 66].contains(sound().status) && program.log.isStreaming })
    let told = program.log.values(of: "sound")
    let silence = "silence until there is a microphone, Opus, 32 kbit/s; everybody who may watch may listen"
    #expect(told == (options.isEmpty ? [silence] : []), "\(program.errorSoFar)")
    let answer = try sound()
    guard options.isEmpty else {
      #expect(answer.status == 66, "\(answer.outputText)")
      return
    }
    #expect(answer.status == 0, "\(answer.error)")
    let status = try #require(JSONSerialization.jsonObject(with: Data(answer.outputText.utf8)) as? [String: Any])
    #expect(status["present"] as? Bool == false, "\(status)")
  }

  @Test(arguments: [(0, 640, 360), (90, 360, 640)])
  func `a player sees a placeholder with text and a clock that ticks`(
    degrees: Int, width: Int, height: Int
  ) throws {
    let directory = try TemporaryDirectory()
    let reception = try Reception.ofH264(
      [
        "--source", directory.path("camera"), "--wait", "--size", "640x360", "--fps", "25",
        "--orientation", "\(degrees)", "--control", "none",
      ], size: (width, height), until: 40, in: directory)
    #expect(reception.receiverLog.isEmpty, "\(reception.receiverLog)")
    let sent = reception.figure("frames", "sent")
    #expect(sent >= 20 && reception.pictureCount == sent, "\(reception.log)")
    #expect(reception.figure("camera", "placeholder_frames") >= sent)
    #expect((reception.statistics["camera"] as? [String: Any])?["state"] as? String == "waiting")
    let warnings = ProgramLog(reception.log).warnings.filter { $0.hasPrefix("no camera yet: ") }
    #expect(warnings.count == 1, "\(reception.log)")

    let pictures = try Data(contentsOf: reception.pictures)
    let bytes = width * height * 3 / 2
    func luma(_ number: Int) -> Data { pictures[number * bytes..<number * bytes + width * height] }
    let (first, last) = (luma(0), luma(reception.pictureCount - 1))
    // Grey with light text on it, and nothing of it at the edges.
    #expect(last.max() ?? 0 > 180 && (last.min() ?? 0) > 20)
    #expect(last.prefix(width * 8).max() ?? 255 < 80)
    let changed = zip(first, last).filter { abs(Int($0) - Int($1)) > 60 }.count
    #expect(changed > 20, "the clock: \(changed) samples")
  }
}
