import Foundation
import TestSupport
import Testing

/// The stream as GStreamer sees it, by the command that the program prints.
@Suite(.serialized) struct GStreamerTests {
  @Test func `the printed pipeline decodes pictures`() throws {
    let directory = try TemporaryDirectory()
    let port = try UDPPort.free()
    let program = try Subprocess(
      [
        nightjarPath, "stream", "--source", "test", "--size", "320x240", "--keyframe-interval", "1s", "--to",
        "rtp://127.0.0.1:\(port)", "--sdp", directory.path("g.sdp"),
      ], in: directory)
    defer { program.send(SIGTERM) }
    #expect(eventually { !program.log.commands(for: "GStreamer").isEmpty })
    let line = try #require(program.log.commands(for: "GStreamer").first)
    // No display here: the same pipeline, counting pictures instead of showing them.
    let command = line.replacingOccurrences(of: "autovideosink sync=false", with: countingSink(20))
    let viewer = try Subprocess.run(["sh", "-c", command], in: directory, limit: 60)
    #expect(viewer.hasPlayed, "\(viewer.outputText)\(viewer.error)")
  }

  @Test func `the printed pipeline plays the sound as well`() throws {
    let directory = try TemporaryDirectory()
    let port = try UDPPort.free()
    let program = try Subprocess(
      [nightjarPath, "stream", "--source", "test", "--size", "320x240", "--keyframe-interval", "1s"]
        + ["--audio", "test", "--control", "none", "--to", "rtp://127.0.0.1:\(port)"], in: directory)
    defer { program.send(SIGTERM) }
    #expect(eventually { !program.log.commands(for: "GStreamer").isEmpty })
    let line = try #require(program.log.commands(for: "GStreamer").first)
    let file = directory.path("sound.raw")
    // GStreamer ends when both have ended.
    let command = line.replacingOccurrences(of: "autovideosink sync=false", with: countingSink(60))
      .replacingOccurrences(of: "autoaudiosink", with: "identity eos-after=150 ! filesink location=\(file)")
    #expect(command.contains("fakesink") && command.contains("filesink"))
    let viewer = try Subprocess.run(["sh", "-c", command], in: directory, limit: 60)
    #expect(viewer.hasPlayed, "\(viewer.outputText)\(viewer.error)")
    let sound = try Data(contentsOf: URL(fileURLWithPath: file))
    // Three seconds, of which at least two have a beep.
    let samples = sound.withUnsafeBytes { Array($0.bindMemory(to: Int16.self)) }
    #expect(samples.count > 48_000 && samples.contains { abs(Int($0)) > 4000 }, "\(samples.count) \(viewer.error)")
  }
}
