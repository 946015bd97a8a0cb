import Foundation
import TestSupport
import Testing

/// The example programs of other packages on our libraries, which `make test` builds first.
@Suite(.serialized) struct ExampleTests {
  private static func program(_ name: String) -> String {
    URL(fileURLWithPath: #filePath).deletingLastPathComponent().deletingLastPathComponent().deletingLastPathComponent()
      .appendingPathComponent(".build/examples/debug/\(name)").path
  }

  /// `clip.h264` in `directory`: 60 pictures, encoded by the example.
  private static func encode(in directory: TemporaryDirectory) throws -> String {
    let (clip, stream) = (directory.path("clip.y4m"), directory.path("clip.h264"))
    let source = try Subprocess.run(
      [
        "ffmpeg", "-v", "error", "-f", "lavfi", "-i", "testsrc2=size=320x240:rate=30", "-frames:v", "60", "-pix_fmt",
        "yuv420p", "-y", clip,
      ], in: directory)
    try #require(source.status == 0, "\(source.error)")
    let encoding = try Subprocess.run([program("encode-y4m"), clip, stream, "1000000"], in: directory)
    try #require(encoding.status == 0, "\(encoding.error)")
    return stream
  }

  @Test func `encode-y4m makes a stream of which ffprobe reads every picture`() throws {
    let directory = try TemporaryDirectory()
    let stream = try Self.encode(in: directory)
    let probe = try Subprocess.run(
      [
        "ffprobe", "-v", "error", "-count_frames", "-show_entries", "stream=width,height,nb_read_frames", "-of",
        "csv=p=0", stream,
      ], in: directory)
    #expect(String(decoding: probe.output, as: UTF8.self) == "320,240,60\n")
    #expect(probe.error.isEmpty, "\(probe.error)")
  }

  @Test func `what packetize-h264 sends is decoded whole`() throws {
    let directory = try TemporaryDirectory()
    let stream = try Self.encode(in: directory)
    let port = try UDPPort.free()
    let sender = [Self.program("packetize-h264"), stream, "127.0.0.1", "\(port)", "60"]
    // Once for the session description, to nobody; then to a receiver that is there.
    let description = try Subprocess.run(sender, in: directory)
    try #require(description.status == 0, "\(description.error)")
    let path = directory.path("clip.sdp")
    try description.output.write(to: URL(fileURLWithPath: path))
    let receiver = try Subprocess(
      [
        "ffmpeg", "-nostdin", "-v", "error", "-protocol_whitelist", "file,udp,rtp", "-probesize", "32",
        "-analyzeduration", "0", "-threads", "1", "-flags", "low_delay", "-i", path, "-fps_mode", "passthrough",
        "-frames:v", "50", "-f", "framecrc", "-",
      ], in: directory)
    try #require(try eventually { try UDPPort.isBound(port) })
    #expect(try Subprocess.run(sender, in: directory).status == 0)
    let result = try receiver.wait(limit: 60)
    let lines = String(decoding: result.output, as: UTF8.self).split(separator: "\n")
    #expect(lines.count { !$0.hasPrefix("#") } == 50, "\(lines)")
    #expect(result.error.isEmpty, "\(result.error)")
  }
}
