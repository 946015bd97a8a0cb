import Foundation
import TestSupport
import Testing

/// The example programs on our libraries, which see no more of them than other packages do.
@Suite(.serialized) struct ExampleTests {
  /// `clip.h264` in `directory`: 60 pictures, encoded by the example.
  private static func encode(in directory: TemporaryDirectory) throws -> String {
    let (clip, stream) = (directory.path("clip.y4m"), directory.path("clip.h264"))
    let source = try Subprocess.run(
      [
        "ffmpeg", "-v", "error", "-f", "lavfi", "-i", "testsrc2=size=320x240:rate=30", "-frames:v", "60", "-pix_fmt",
        "yuv420p", "-y", clip,
      ], in: directory)
    try #require(source.status == 0, "\(source.error)")
    let encoding = try Subprocess.run([builtPath("encode-y4m"), clip, stream, "1000000"], in: directory)
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

  @Test func `transcode makes a stream of the same pictures with fewer bits`() throws {
    let directory = try TemporaryDirectory()
    let stream = try Self.encode(in: directory)
    let smaller = directory.path("smaller.h264")
    let result = try Subprocess.run([builtPath("transcode"), stream, smaller, "200000"], in: directory)
    try #require(result.status == 0, "\(result.error)\(result.outputText)")
    #expect(result.outputText.hasPrefix("60 pictures by "))
    func bytes(_ path: String) throws -> Int { try Data(contentsOf: URL(fileURLWithPath: path)).count }
    #expect(try bytes(smaller) < bytes(stream) / 2)
    let compared = try Subprocess.run(
      ["ffmpeg", "-nostdin", "-i", smaller, "-i", stream, "-lavfi", "psnr", "-f", "null", "-"], in: directory)
    let value = compared.error.components(separatedBy: "average:").last.flatMap { text in
      Double(text.prefix { $0.isNumber || $0 == "." })
    }
    // Pictures that were exchanged or left out would have some 12 dB.
    #expect((value ?? 0) > 20, "\(compared.error.suffix(300))")
  }

  @Test func `the packets of packetize-h264 are decoded completely`() throws {
    let directory = try TemporaryDirectory()
    let stream = try Self.encode(in: directory)
    let port = try UDPPort.free()
    let sender = [builtPath("packetize-h264"), stream, "127.0.0.1", "\(port)", "60"]
    // Once for the session description, to nobody; then to a receiver that is there.
    let description = try Subprocess.run(sender, in: directory)
    try #require(description.status == 0, "\(description.error)")
    let path = directory.path("clip.sdp")
    try description.output.write(to: URL(fileURLWithPath: path))
    let receiver = try Subprocess(
      [
        "ffmpeg", "-nostdin", "-v", "error", "-protocol_whitelist", "file,udp,rtp", "-probesize", "32",
        "-analyzeduration", "0", "-threads", "1", "-flags", "low_delay", "-buffer_size", "4000000", "-i", path,
        "-fps_mode", "passthrough",
        "-frames:v", "50", "-f", "framecrc", "-",
      ], in: directory)
    try #require(try eventually { try UDPPort.isBound(port) })
    #expect(try Subprocess.run(sender, in: directory).status == 0)
    let result = try receiver.wait(limit: 60)
    let lines = String(decoding: result.output, as: UTF8.self).split(separator: "\n")
    #expect(lines.count { !$0.hasPrefix("#") } == 50, "\(lines)")
    #expect(result.error.isEmpty, "\(result.error)")
  }

  @Test func `the packets of camera-to-rtp are decoded completely`() throws {
    let directory = try TemporaryDirectory()
    let port = try UDPPort.free()
    // Once for the session description, to nobody; then to a receiver that is there.
    let description = try Subprocess.run([builtPath("camera-to-rtp"), "127.0.0.1", "\(port)", "0.1"], in: directory)
    try #require(description.status == 0, "\(description.error)")
    let path = directory.path("camera.sdp")
    try description.output.write(to: URL(fileURLWithPath: path))
    let receiver = try Subprocess(
      [
        "ffmpeg", "-nostdin", "-v", "error", "-protocol_whitelist", "file,udp,rtp", "-probesize", "32",
        "-analyzeduration", "0", "-threads", "1", "-flags", "low_delay", "-buffer_size", "4000000", "-i", path,
        "-fps_mode", "passthrough",
        "-frames:v", "20", "-f", "framecrc", "-",
      ], in: directory)
    try #require(try eventually { try UDPPort.isBound(port) })
    let sender = try Subprocess([builtPath("camera-to-rtp"), "127.0.0.1", "\(port)", "100"], in: directory)
    let result = try receiver.wait(limit: 90)
    sender.send(SIGTERM)
    _ = try sender.wait(limit: 30)
    let lines = result.outputText.split(separator: "\n")
    #expect(lines.count { !$0.hasPrefix("#") } == 20, "\(lines)")
    #expect(lines.contains { $0.hasPrefix("#dimensions 0: 1280x720") }, "\(lines)")
    #expect(result.error.isEmpty, "\(result.error)")
  }

  @Test func `ffmpeg plays what serve-rtsp serves, one viewer after the other`() throws {
    let directory = try TemporaryDirectory()
    let port = try TCPPort.free()
    let server = try Subprocess([builtPath("serve-rtsp"), "\(port)", "200"], in: directory)
    let url = "rtsp://127.0.0.1:\(port)/camera"
    let probe = [
      "ffprobe", "-v", "error", "-rtsp_transport", "tcp", "-show_entries", "stream=codec_name,width,height", "-of",
      "csv=p=0", url,
    ]
    // Refused until it listens.
    try #require(
      try eventually {
        try Subprocess.run(probe, in: directory).outputText.hasPrefix("h264,640,480")
      }, "\(server.errorSoFar)")
    let player = try Subprocess.run(
      [
        "ffmpeg", "-nostdin", "-v", "error", "-rtsp_transport", "tcp", "-i", url, "-fps_mode", "passthrough",
        "-frames:v", "20", "-f", "framecrc", "-",
      ], in: directory)
    let lines = player.outputText.split(separator: "\n")
    #expect(lines.count { !$0.hasPrefix("#") } == 20, "\(lines)")
    #expect(player.error.isEmpty, "\(player.error)")
    // A path that is not served.
    let missing = try Subprocess.run(
      ["ffprobe", "-v", "error", "-rtsp_transport", "tcp", "rtsp://127.0.0.1:\(port)/other"], in: directory)
    #expect(missing.error.contains("404"), "\(missing.error)")
    server.send(SIGTERM)
    _ = try server.wait(limit: 30)
  }

  @Test func `list-hardware tells what a driver makes, and why a node cannot be used`() throws {
    try #require(StrictVADriver.isBuilt)
    let directory = try TemporaryDirectory()
    let (node, log) = (directory.path("renderD128"), directory.path("log"))
    try Data().write(to: URL(fileURLWithPath: node))
    let listing = try Subprocess.run(
      [builtPath("list-hardware"), node, directory.path("missing")], in: directory,
      environment: StrictVADriver.environment(node: node, log: log))
    #expect(listing.status == 0)
    let missing = directory.path("missing")
    let obstacle = "no render node \(missing): is there a GPU, and its kernel driver loaded?"
    for line in ["\(node) nightjar strict test driver", "\(missing) \(obstacle)"] {
      #expect(listing.listing.count(of: line) == 1, "\(listing.outputText)")
    }
    #expect(StrictVADriver.violations(in: log) == [])
  }
}
