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
    #expect(eventually { program.errorSoFar.contains("GStreamer: ") })
    let line = try #require(program.errorSoFar.split(separator: "\n").first { $0.contains("GStreamer: ") })
    // No display here: the same pipeline, counting pictures instead of showing them.
    let command = line.split(separator: ": ", maxSplits: 1)[1].replacingOccurrences(
      of: "autovideosink sync=false", with: countingSink(20))
    let viewer = try Subprocess.run(["sh", "-c", command], in: directory, limit: 60)
    #expect(viewer.hasPlayed, "\(viewer.outputText)\(viewer.error)")
  }
}
