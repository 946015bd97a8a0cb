import Foundation
import TestSupport
import Testing

/// A USB webcam with a microphone, both driven by the kernel, on a host whose other sound cards come first.
@Suite(.serialized, .enabled(if: Vivid.isHere)) struct WebcamMicrophoneTests {
  /// The tone that the microphone hears, in Hz.
  private static let tone = 1000
  /// Of a sine whose peak is at −14 dBFS.
  private static let level = -17.0
  private let directory: TemporaryDirectory

  init() throws { directory = try TemporaryDirectory() }

  /// A webcam, and the name of its microphone.
  private func webcam(
    port: Int = 0, serial: String = UVCCamera.newSerial()
  ) throws -> (UVCCamera, microphone: String) {
    let camera = try UVCCamera(jpegs: ["640x360"], tone: Self.tone, port: port, serial: serial, in: directory)
    #expect(eventually { camera.microphone != nil })
    return (camera, try #require(camera.microphone))
  }

  private func sound(of stream: LoggedStream) throws -> [String: Any] {
    let result = try Subprocess.run(
      [nightjarPath, "ctl", "--socket", stream.socket, "audio", "show", "--json"], in: directory)
    return try JSONSerialization.jsonObject(with: result.output) as? [String: Any] ?? [:]
  }

  @Test func `devices names the webcam's microphone with the webcam, and no other one`() throws {
    let (camera, microphone) = try webcam()
    let result = try Subprocess.run([nightjarPath, "devices", "--json"], in: directory)
    let document = try JSONSerialization.jsonObject(with: result.output) as? [String: Any]
    let list = try #require(document?["microphones"] as? [[String: Any]])
    let names = list.compactMap { $0["device"] as? String }
    // A host's first microphone is not the webcam's.
    let own = try #require(names.firstIndex(of: microphone), "\(names)")
    #expect((names.firstIndex(of: LoopbackCard.microphone) ?? own) < own, "\(names)")
    for (name, entry) in zip(names, list) {
      #expect(entry["camera"] as? String == (name == microphone ? camera.node : nil), "\(entry)")
    }
    #expect(list[own]["name"] as? String == "Rig Camera" && list[own]["usable"] as? Bool == true, "\(list[own])")
    #expect(list[own]["rates"] as? [Int] == [48_000] && list[own]["channel_range"] as? [Int] == [1, 1], "\(list[own])")
  }

  @Test func `the webcam's own microphone is heard, and heard again after the webcam was unplugged`() throws {
    let (camera, microphone) = try webcam()
    let port = try TCPPort.free()
    let line = try SoundLine()
    let stream = try LoggedStream(
      [
        "--source", try #require(camera.node), "--format", "mjpeg", "--size", "640x360", "--rtsp", "127.0.0.1:\(port)",
        "--to", "rtp://127.0.0.1:\(try UDPPort.free())?audio=\(line.port)",
      ], in: directory)
    let found = "microphone: Rig Camera (\(microphone)), 48000 Hz mono"
    #expect(stream.says(found), "\(stream.program.errorSoFar)")
    let listener = try RTSPListener(port: port, in: directory)
    // A player starts slowly in a guest that shares its host.
    func hears() -> Bool { eventually(within: 300) { listener.hears(Self.tone, level: Self.level) } }
    #expect(hears(), "\(listener.last as Any) \(listener.log)")

    // A busy machine may have lost the card before.
    let losses = try #require(try sound(of: stream)["losses"] as? Int)
    let finds = stream.program.errorSoFar.components(separatedBy: found).count
    try camera.command("unplug")
    #expect(stream.says("the camera was unplugged"), "\(stream.program.errorSoFar)")
    #expect(try eventually { try sound(of: stream)["present"] as? Bool == false }, "\(stream.program.errorSoFar)")
    #expect(eventually(within: 60) { listener.hearsNothing }, "\(listener.last as Any)")
    try camera.command("plug")
    #expect(stream.says("camera is back after"), "\(stream.program.errorSoFar)")
    #expect(stream.says(found, times: finds), "\(stream.program.errorSoFar)")
    // The same player, which knows nothing of all this.
    #expect(hears(), "\(listener.last as Any) \(listener.log)")
    #expect(listener.isPlaying, "\(listener.log)")
    #expect(try sound(of: stream)["losses"] as? Int ?? 0 > losses, "\(stream.program.errorSoFar)")
    let state = try camera.state()
    #expect(state.streaming && state.sound?.listening == true)

    let log = stream.program.errorSoFar
    let figures = try stream.finish()["camera"] as? [String: Any]
    // On a busy machine the camera may have stood still besides.
    let cameraLosses = try #require(figures?["losses"] as? Int)
    #expect(cameraLosses >= 1 && figures?["reopenings"] as? Int == cameraLosses, "\(log)")
    line.end()
    #expect(stream.packets.sequenceGaps == 0 && stream.packets.sourceCount == 1, "\(log)")
    #expect(line.faults == [], "\(log)")
    print(
      "webcam's microphone: \(state.sound.map { "\($0.packets) packets, \($0.lost) lost" } ?? "") after the replug; heard "
        + "\(listener.seconds) s, the last at \(listener.last?.frequency ?? 0) Hz, \(listener.last?.level ?? 0) dBFS")
  }

  @Test func `a microphone that answers no more, though it is there, is stuck until it answers`() throws {
    let (camera, microphone) = try webcam()
    // The driver waits for the camera when it closes the card.
    defer { camera.answer() }
    let stream = try LoggedStream(
      ["--source", "test", "--size", "320x240", "--fps", "5", "--audio", microphone], in: directory)
    func health() throws -> String? {
      let cameras = try Health(stream.socket, in: directory)?.document["cameras"] as? [[String: Any]]
      return cameras?.first?["sound"] as? String
    }
    #expect(try eventually(within: 60) { try health() == "present" }, "\(stream.program.errorSoFar)")
    let count = stream.packets.units.count
    camera.hang()
    #expect(try eventually(within: 60) { try health() == "stuck" }, "\(stream.program.errorSoFar)")
    #expect(stream.says("the sound device \(microphone) delivered nothing for "), "\(stream.program.errorSoFar)")
    // The pictures go on: a second of them.
    #expect(eventually { stream.packets.units.count > count + 5 })
    #expect(try sound(of: stream)["present"] as? Bool == false)
    camera.answer()
    #expect(try eventually(within: 60) { try health() == "present" }, "\(stream.program.errorSoFar)")
    #expect(try eventually { abs((try sound(of: stream)["peak_dbfs"] as? Double ?? 0) + 14) < 1 })
    // One that is taken away is absent, and no longer stuck.
    camera.hang()
    #expect(try eventually(within: 60) { try health() == "stuck" }, "\(stream.program.errorSoFar)")
    camera.answer()
    try camera.command("unplug")
    #expect(try eventually(within: 60) { try health() == "absent" }, "\(stream.program.errorSoFar)")
    _ = try stream.finish()
  }

  @Test func `a webcam that comes late, or back at another port, has its own microphone`() throws {
    let (camera, microphone) = try webcam()
    let node = try #require(camera.node)
    try camera.command("unplug")
    #expect(eventually { camera.node == nil && camera.microphone == nil })
    let stream = try LoggedStream(
      ["--source", node, "--wait", "--format", "mjpeg", "--size", "640x360"], in: directory)
    #expect(stream.says("streaming"), "\(stream.program.errorSoFar)")
    #expect(try sound(of: stream)["present"] as? Bool == false)
    try camera.command("plug")
    #expect(stream.says("microphone: Rig Camera (\(microphone))"), "\(stream.program.errorSoFar)")
    #expect(try eventually { abs((try sound(of: stream)["peak_dbfs"] as? Double ?? 0) + 14) < 1 })

    // Another one of its model takes its port, and with it the name of its microphone.
    try camera.command("unplug")
    #expect(stream.says("the camera was unplugged"), "\(stream.program.errorSoFar)")
    #expect(eventually { camera.node == nil && camera.microphone == nil })
    let (other, name) = try webcam()
    #expect(name == microphone)
    // nightjar looks once a second.
    usleep(2_500_000)
    let (moved, newName) = try webcam(port: 1, serial: camera.serial)
    #expect(newName != name)
    #expect(stream.says("microphone: Rig Camera (\(newName))"), "\(stream.program.errorSoFar)")
    #expect(try eventually { try moved.state().sound?.packets ?? 0 > 100 })
    #expect(try other.state().sound?.packets == 0)
    let log = stream.program.errorSoFar
    #expect(!log.contains("Loopback") && !log.contains("Dummy"), "\(log)")
    _ = try stream.finish()
  }
}
