import Foundation
import TestSupport
import Testing

/// A stream whose USB webcam is unplugged, stalls, freezes or spoils its pictures, with the kernel's driver of those.
@Suite(.serialized, .enabled(if: Vivid.isHere)) struct WebcamLossRigTests {
  private static func stream(_ camera: UVCCamera, in directory: TemporaryDirectory) throws -> LoggedStream {
    let stream = try LoggedStream(
      ["--source", try #require(camera.node), "--format", "mjpeg", "--size", "640x360"], in: directory)
    #expect(stream.says("streaming"), "\(stream.program.errorSoFar)")
    return stream
  }

  /// Ends it; there was no gap.
  private static func finish(_ stream: LoggedStream) throws -> [String: Any] {
    let log = stream.program.errorSoFar
    let figures = try stream.finish()
    #expect(stream.packets.sequenceGaps == 0 && stream.packets.sourceCount == 1, "\(log)")
    #expect(stream.packets.steps(since: 0).shortest > 0)
    let camera = figures["camera"] as? [String: Any] ?? [:]
    // The camera's own pictures have been converted, and took their time; placeholders were not. The last one of these
    // may have been made and not taken.
    let conversion = (figures["latency_ms"] as? [String: [String: Double]])?["convert"] ?? [:]
    let captured = (figures["frames"] as? [String: Any])?["captured"] as? Int ?? 0
    let converted = Int(conversion["frames"] ?? 0)
    #expect(abs(captured - (camera["placeholder_frames"] as? Int ?? 0) - converted) <= 1, "\(figures)")
    #expect(converted > 0 && conversion["p50"] ?? 0 > 0.01, "\(conversion)")
    return camera
  }

  @Test func `a webcam that is pulled out and plugged in is taken again by its serial number`() throws {
    let directory = try TemporaryDirectory()
    let camera = try UVCCamera(jpegs: ["640x360"], in: directory)
    let stream = try Self.stream(camera, in: directory)
    for cycle in 1...3 {
      let start = PacketLog.now()
      try camera.command("unplug")
      #expect(stream.says("the camera was unplugged", times: cycle), "\(stream.program.errorSoFar)")
      #expect(stream.state == "disconnected" && stream.health == "503 disconnected")
      #expect(eventually { stream.packets.units.last?.time ?? 0 > start + 1 })
      try camera.command("plug")
      #expect(stream.says("camera is back after", times: cycle), "\(stream.program.errorSoFar)")
      #expect(stream.packets.steps(since: start - 0.5).longest < 1 + stream.heartbeat.longestPause)
      #expect(eventually { stream.health == "200 streaming" }, "\(stream.health)")
    }
    let log = stream.program.errorSoFar
    let figures = try Self.finish(stream)
    // A machine that is held up may have lost the camera besides, and says so.
    let stalls = stream.stalls
    #expect(log.components(separatedBy: "the camera was unplugged").count - 1 == 3, "\(log)")
    #expect(figures["losses"] as? Int == 3 + stalls && figures["reopenings"] as? Int == 3 + stalls, "\(figures) \(log)")
  }

  @Test func `a webcam that stalls is replaced, and taken back when it delivers`() throws {
    let directory = try TemporaryDirectory()
    let camera = try UVCCamera(jpegs: ["640x360"], in: directory)
    let stream = try Self.stream(camera, in: directory)
    try camera.command("stall")
    #expect(stream.says("no picture for 2 seconds"), "\(stream.program.errorSoFar)")
    #expect(stream.state == "stalled" && stream.health == "503 stalled")
    let before = stream.packets.units.count
    #expect(eventually { stream.packets.units.count > before + 30 }, "placeholders")
    try camera.command("resume")
    #expect(stream.says("camera is back after"), "\(stream.program.errorSoFar)")
    #expect(try Self.finish(stream)["state"] as? String == "live")
  }

  @Test func `a webcam that freezes is reported, and streamed`() throws {
    let directory = try TemporaryDirectory()
    let camera = try UVCCamera(jpegs: ["640x360"], in: directory)
    let stream = try Self.stream(camera, in: directory)
    try camera.command("freeze")
    #expect(stream.says("picture frozen since"), "\(stream.program.errorSoFar)")
    // A machine that is held up may lose the camera for a moment.
    #expect(eventually { stream.state == "frozen" && stream.health == "503 frozen" })
    try camera.command("resume")
    #expect(stream.says("picture moves again"), "\(stream.program.errorSoFar)")
    #expect(eventually { stream.health == "200 streaming" }, "\(stream.health)")
    let figures = try Self.finish(stream)
    #expect(figures["losses"] as? Int == stream.stalls, "\(figures)")
    #expect(figures["placeholder_frames"] as? Int == 0 || stream.stalls > 0, "\(figures)")
  }

  @Test func `a webcam that delivers nothing but damaged JPEGs has stalled, and is taken back`() throws {
    let directory = try TemporaryDirectory()
    let camera = try UVCCamera(jpegs: ["640x360"], in: directory)
    let stream = try Self.stream(camera, in: directory)
    try camera.command("corrupt 100000 header")
    #expect(stream.says("only corrupt pictures for 2 seconds"), "\(stream.program.errorSoFar)")
    #expect(stream.state == "stalled")
    try camera.command("resume")
    #expect(stream.says("camera is back after"), "\(stream.program.errorSoFar)")
    #expect(try Self.finish(stream)["state"] as? String == "live")
  }

  @Test func `a webcam that comes late brings its colours along`() throws {
    let directory = try TemporaryDirectory()
    let camera = try UVCCamera(jpegs: ["640x360"], in: directory)
    let node = try #require(camera.node)
    try camera.command("unplug")
    let stream = try LoggedStream(
      ["--source", node, "--wait", "--format", "mjpeg", "--size", "640x360"], in: directory)
    #expect(stream.says("streaming"), "\(stream.program.errorSoFar)")
    // What the placeholder's samples mean is not what those of a JPEG do.
    #expect(try Self.range(of: stream, in: directory) == "tv")
    try camera.command("plug")
    #expect(stream.says("camera is there after"), "\(stream.program.errorSoFar)")
    #expect(try eventually { try Self.range(of: stream, in: directory) == "pc" })
    _ = try Self.finish(stream)
  }

  /// Returns ffprobe's range of the stream: limited (`tv`) or full (`pc`).
  private static func range(of stream: LoggedStream, in directory: TemporaryDirectory) throws -> String {
    let (url, description) = ("rtp://127.0.0.1:\(try UDPPort.free())", directory.path("probe.sdp"))
    func control(_ arguments: String...) throws {
      let result = try Subprocess.run([nightjarPath, "ctl", "--socket", stream.socket] + arguments, in: directory)
      #expect(result.status == 0, "\(result.error)")
    }
    try control("add", url, "--sdp", description)
    let result = try Subprocess.run(
      [
        "ffprobe", "-v", "quiet", "-protocol_whitelist", "file,udp,rtp", "-show_entries", "stream=color_range", "-of",
        "csv=p=0", description,
      ], in: directory, limit: 60)
    try control("remove", url)
    return result.outputText.trimmingCharacters(in: .whitespacesAndNewlines)
  }
}
