import Foundation
import TestSupport
import Testing

/// The stream as ffmpeg sees it: every frame, no complaint, the right picture.
@Suite(.serialized) struct FFmpegTests {
  /// A clip of `frames` pictures that move, as y4m.
  private static func clip(
    size: String, frames: Int, rate: String = "30", in directory: TemporaryDirectory
  ) throws -> String {
    let path = directory.path("clip.y4m")
    let result = try Subprocess.run(
      [
        "ffmpeg", "-v", "error", "-f", "lavfi", "-i", "testsrc2=size=\(size):rate=\(rate)", "-frames:v", "\(frames)",
        "-pix_fmt", "yuv420p", "-y", path,
      ], in: directory)
    #expect(result.status == 0, "\(result.error)")
    return path
  }

  @Test(arguments: [
    ("320x240", "", "127.0.0.1"), ("642x362", "?mtu=576", "127.0.0.1"),
    ("1280x720", "?mtu=1400", hasIPv6 ? "::1" : "127.0.0.1"),
  ])
  func `every frame of a clip arrives, and the picture is the clip's`(
    size: String, options: String, host: String
  ) throws {
    let directory = try TemporaryDirectory()
    let frames = 45
    let path = try Self.clip(size: size, frames: frames, in: directory)
    let numbers = size.split(separator: "x").compactMap { Int($0) }
    let reception = try Reception.ofClip(
      path, ["--bitrate", "8M", "--keyframe-interval", "1s"], size: (numbers[0], numbers[1]), host: host,
      options: options, in: directory)
    #expect(reception.receiverLog.isEmpty, "\(reception.receiverLog)")
    #expect(reception.pictureCount == frames)
    #expect(reception.figure("frames", "sent") == frames)
    #expect(reception.figure("frames", "dropped") == 0)
    #expect(reception.figure("frames", "key_frames") == 2)

    let comparison = try Subprocess.run(
      [
        "ffmpeg", "-v", "info", "-f", "rawvideo", "-pix_fmt", "yuv420p", "-s", size, "-r", "30", "-i",
        reception.pictures.path, "-i", path, "-lavfi", "psnr", "-f", "null", "-",
      ], in: directory)
    let average = comparison.error.split(separator: " ").last { $0.hasPrefix("average:") }?.dropFirst(8)
    let quality = try #require(average.flatMap { Double($0) }, "\(comparison.error)")
    #expect(quality > 30, "PSNR \(quality) dB")
  }

  @Test func `the synthetic camera's colours arrive as they were drawn`() throws {
    let directory = try TemporaryDirectory()
    let reception = try Reception.ofH264(
      ["--source", "test", "--size", "640x360"], size: (640, 360), until: 11, in: directory)
    #expect(reception.receiverLog.isEmpty, "\(reception.receiverLog)")
    #expect(reception.pictureCount == reception.figure("frames", "sent"))
    #expect(reception.figure("frames", "sent") > 10)
    let pictures = try Data(contentsOf: reception.pictures)
    try #require(pictures.count >= 640 * 360 * 3 / 2)
    // The leftmost of the 75 % bars is white: Y 180 by BT.709 in limited range, no colour.
    let position = 20 * 640 + 20
    #expect(abs(Int(pictures[position]) - 180) <= 3)
    let chroma = 640 * 360 + 10 * 320 + 10
    #expect(abs(Int(pictures[chroma]) - 128) <= 3)
  }

  @Test func `a viewer that joins late sees a picture`() throws {
    let directory = try TemporaryDirectory()
    let port = try UDPPort.free()
    let description = directory.path("late.sdp")
    let program = try Subprocess(
      [
        nightjarPath, "stream", "--source", "test", "--size", "320x240", "--keyframe-interval", "1s", "--to",
        "rtp://127.0.0.1:\(port)", "--sdp", description,
      ], in: directory)
    defer { program.send(SIGTERM) }
    #expect(eventually { program.log.isStreaming })
    let viewer = try Subprocess.run(
      [
        "ffmpeg", "-nostdin", "-v", "info", "-protocol_whitelist", "file,udp,rtp", "-i", description, "-frames:v",
        "20", "-f", "null", "-",
      ], in: directory, limit: 60)
    #expect(viewer.status == 0)
    #expect(viewer.error.contains("320x240"))
    program.send(SIGINT)
    let result = try program.wait()
    #expect(result.status == 0, "\(result.error)")
    let summary = /[0-9:]+: [0-9]+ frames captured, [0-9]+ encoded .*/
    #expect(result.log.lines.count { $0.wholeMatch(of: summary) != nil } == 1, "\(result.error)")
  }

  /// Streams the synthetic camera with `options` to ffmpeg, which keeps the transport stream as it comes, until it has
  /// kept three seconds of pictures; its path.
  static func keepTransportStream(_ options: [String] = [], in directory: TemporaryDirectory) throws -> String {
    let path = directory.path("out.ts")
    let port = try UDPPort.free()
    let receiver = try Subprocess(
      [
        "ffmpeg", "-nostdin", "-v", "warning", "-i", "rtp://127.0.0.1:\(port)?buffer_size=4000000", "-c", "copy",
        "-flush_packets", "1", "-y", path,
      ], in: directory)
    defer { receiver.send(SIGKILL) }
    #expect(try eventually { try UDPPort.isBound(port) })
    let running = try Subprocess(
      [
        nightjarPath, "stream", "--control", "none", "--source", "test", "--size", "640x360", "--to",
        "rtp://127.0.0.1:\(port)?payload=mp2t",
      ] + options, in: directory)
    func kept() -> Data { (try? Data(contentsOf: URL(fileURLWithPath: path))) ?? Data() }
    // ffmpeg looks at five seconds before it writes them.
    _ = eventually { pictures(in: kept()) >= 90 || !running.isRunning }
    running.send(SIGTERM)
    let program = try running.wait()
    #expect(program.status == 0, "\(program.error)")
    // What ffmpeg has not written a second after its socket was empty, it keeps: the last picture has no end.
    _ = try eventually { try UDPPort.waitingBytes(port) == 0 || !receiver.isRunning }
    var (size, since) = (kept().count, ContinuousClock.now)
    _ = eventually {
      let present = kept().count
      if present != size { (size, since) = (present, .now) }
      return .now - since > .seconds(1)
    }
    receiver.send(SIGKILL)
    let log = try receiver.wait().error
    #expect(!log.contains("Continuity") && !log.contains("corrupt"), "\(log)")
    return path
  }

  /// Returns the number of pictures in a transport stream of ffmpeg's: packets that begin a unit of the first stream,
  /// whose number is 0x100 (ISO/IEC 13818-1 clause 2.4.3.2).
  private static func pictures(in stream: Data) -> Int {
    let bytes = [UInt8](stream)
    return stride(from: 0, to: bytes.count - 2, by: 188).count { bytes[$0 + 1] & 0x5f == 0x41 && bytes[$0 + 2] == 0 }
  }

  @Test func `the transport stream is whole`() throws {
    let directory = try TemporaryDirectory()
    let stream = try Self.keepTransportStream(in: directory)
    let probe = try Subprocess.run(
      [
        "ffprobe", "-v", "warning", "-count_frames", "-show_entries",
        "stream=codec_name,width,height,nb_read_frames:format=probe_score", "-of", "default=nw=1",
        stream,
      ], in: directory)
    #expect(probe.outputText.contains("codec_name=h264"))
    #expect(probe.outputText.contains("width=640"))
    let frames = probe.outputText.split(separator: "\n").first { $0.hasPrefix("nb_read_frames=") }
    #expect(Int(frames?.dropFirst(15) ?? "") ?? 0 > 60, "\(probe.outputText)")
  }
}
