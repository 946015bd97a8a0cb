import Foundation
import TestSupport
import Testing

/// Pictures whose slices leave one by one, as players see them.
@Suite(.serialized) struct SliceStreamingTests {
  private static let options = ["--encoder", "x264", "--preset", "ultra-low-latency"]

  @Test(arguments: [("320x240", "1", ""), ("1280x720", "1", "?mtu=1400"), ("642x362", "2", "?mtu=576")])
  func `ffmpeg decodes every picture of a clip`(size: String, threads: String, destination: String) throws {
    let directory = try TemporaryDirectory()
    let (frames, clip) = (60, directory.path("clip.y4m"))
    let made = try Subprocess.run(
      [
        "ffmpeg", "-v", "error", "-f", "lavfi", "-i", "testsrc2=size=\(size):rate=30", "-frames:v", "\(frames)",
        "-pix_fmt", "yuv420p", "-y", clip,
      ], in: directory)
    try #require(made.status == 0, "\(made.error)")
    let numbers = size.split(separator: "x").compactMap { Int($0) }
    let reception = try Reception.ofH264(
      Self.options + [
        "--source", "file:\(clip)", "--loop", "1", "--bitrate", "8M", "--keyframe-interval", "1s", "--threads", threads,
      ], size: (numbers[0], numbers[1]), options: destination, in: directory)
    #expect(reception.receiverLog.isEmpty, "\(reception.receiverLog)")
    #expect(reception.pictureCount == frames)
    #expect(reception.figure("frames", "sent") == frames)
    #expect(reception.figure("frames", "dropped") == 0)
    #expect(reception.figure("frames", "key_frames") == 2)
    let comparison = try Subprocess.run(
      [
        "ffmpeg", "-v", "info", "-f", "rawvideo", "-pix_fmt", "yuv420p", "-s", size, "-r", "30", "-i",
        reception.pictures.path, "-i", clip, "-lavfi", "psnr", "-f", "null", "-",
      ], in: directory)
    let average = comparison.error.split(separator: " ").last { $0.hasPrefix("average:") }?.dropFirst(8)
    let quality = try #require(average.flatMap { Double($0) }, "\(comparison.error)")
    #expect(quality > 25, "PSNR \(quality) dB")
  }

  @Test func `the transport stream is whole`() throws {
    let directory = try TemporaryDirectory()
    let port = try UDPPort.free()
    let receiver = try Subprocess(
      [
        "ffmpeg", "-nostdin", "-v", "warning", "-i", "rtp://127.0.0.1:\(port)?buffer_size=4000000", "-c", "copy",
        "-flush_packets", "1", "-y", directory.path("out.ts"),
      ], in: directory)
    #expect(try eventually { try UDPPort.isBound(port) })
    let program = try Subprocess.run(
      [nightjarPath, "stream", "--control", "none", "--source", "test", "--size", "640x360", "--duration", "6s"]
        + Self.options + ["--to", "rtp://127.0.0.1:\(port)?payload=mp2t"], in: directory)
    #expect(program.status == 0, "\(program.error)")
    usleep(500_000)
    receiver.send(SIGKILL)
    let log = try receiver.wait(limit: 30).error
    #expect(!log.contains("Continuity") && !log.contains("corrupt"), "\(log)")
    let probe = try Subprocess.run(
      [
        "ffprobe", "-v", "error", "-count_frames", "-show_entries", "stream=nb_read_frames", "-of", "csv=p=0",
        directory.path("out.ts"),
      ], in: directory)
    #expect(probe.error.isEmpty, "\(probe.error)")
    #expect(Int(probe.outputText.filter(\.isNumber)) ?? 0 > 20, "\(probe.outputText)")
  }

  @Test(arguments: ["rtp://127.0.0.1:%", "srtp://127.0.0.1:%?suite=AEAD_AES_128_GCM"])
  func `the printed GStreamer pipeline decodes pictures`(destination: String) throws {
    let directory = try TemporaryDirectory()
    let address = destination.replacingOccurrences(of: "%", with: "\(try UDPPort.free())")
    let program = try Subprocess(
      [nightjarPath, "stream", "--control", "none", "--source", "test", "--size", "320x240"] + Self.options + [
        "--keyframe-interval", "1s", "--to", address, "--sdp", directory.path("g.sdp"),
      ], in: directory)
    defer { program.send(SIGTERM) }
    #expect(eventually { program.errorSoFar.contains("GStreamer") })
    let line = try #require(program.errorSoFar.split(separator: "\n").first { $0.contains("GStreamer") })
    // No display here: the same pipeline, counting pictures instead of showing them.
    let command = line.split(separator: ": ", maxSplits: 1)[1].replacingOccurrences(
      of: "autovideosink sync=false", with: "identity eos-after=20 ! fakesink sync=false")
    let viewer = try Subprocess.run(["sh", "-c", command], in: directory, limit: 60)
    #expect(viewer.status == 0, "\(viewer.error)")
    #expect(viewer.outputText.contains("Got EOS"), "\(viewer.outputText)")
  }

  @Test func `ffmpeg and GStreamer play over RTSP by UDP and TCP`() throws {
    let program = try ServedProgram(Self.options)
    var ffmpeg: [Subprocess] = []
    var gstreamer: [Subprocess] = []
    for transport in ["udp", "tcp"] {
      ffmpeg.append(try program.ffmpeg(program.url(), transport: transport))
      gstreamer.append(try program.gstreamer(program.url(), protocols: transport))
    }
    for process in ffmpeg { try expectDecoded(process) }
    for process in gstreamer { try expectPlayed(process) }
    let result = try program.end()
    #expect(result.status == 0, "\(result.error)")
  }
}
