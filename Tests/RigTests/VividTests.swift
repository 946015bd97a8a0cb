import Foundation
import TestSupport
import Testing

@Suite(.serialized, .enabled(if: Vivid.isHere)) struct VividTests {
  // RGB3 goes through libv4l; the others are converted by libyuv, or not at all.
  @Test(arguments: [
    ("nv12", 0, "no copy"), ("yuyv", 0, "libyuv"), ("uyvy", 0, "libyuv"), ("yu12", 0, "libyuv"), ("nv21", 0, "libyuv"),
    ("rgb3", 0, "libv4l"), ("nm12", 1, "no copy"),
  ])
  func `a camera streams in each format, and every frame is decoded`(
    format: String, camera: Int, conversion: String
  ) throws {
    let directory = try TemporaryDirectory()
    let reception = try Reception.ofH264(
      [
        "--source", try Vivid.node(camera), "--format", format, "--size", "1280x720", "--fps", "30",
      ], size: (1280, 720), until: 20, in: directory)
    // ffmpeg complains of packets out of order and of pictures that are missing: all came, and in order.
    #expect(reception.receiverLog.isEmpty, "\(reception.receiverLog)")
    let sent = reception.figure("frames", "sent")
    #expect(reception.pictureCount == sent, "\(reception.log)")
    // How many come within the minute is the machine's affair, and so is what the driver skips meanwhile. What it
    // delivers is whole.
    #expect(sent > 0, "\(reception.log)")
    for cause in ["driver_error", "short", "corrupt", "encoder_error"] {
      #expect(reception.figure("frames", "dropped_by_cause", cause) == 0, "\(cause): \(reception.log)")
    }
    let formats = ProgramLog(reception.log).values(of: "format")
    let expected = "1280x720 at 30 fps, \(format.uppercased()) (\(conversion)"
    #expect(formats.count == 1 && formats.allSatisfy { $0.hasPrefix(expected) }, "\(reception.log)")

    // vivid draws colour bars from the left edge on, white first: neither black nor coloured.
    let pictures = try Data(contentsOf: reception.pictures)
    try #require(pictures.count >= 1280 * 720 * 3 / 2)
    let last = pictures.count - 1280 * 720 * 3 / 2
    let luma = pictures[(last + 600 * 1280)..<(last + 601 * 1280)]
    #expect((luma.max() ?? 0) > 150 && (luma.min() ?? 255) < 60)
    let chroma = pictures[(last + 1280 * 720 + 300 * 640)..<(last + 1280 * 720 + 301 * 640)]
    #expect((chroma.max() ?? 0) > 160 && (chroma.min() ?? 255) < 100)
  }

  @Test func `auto takes NV12 without a copy`() throws {
    let directory = try TemporaryDirectory()
    let result = try Subprocess.run(
      [nightjarPath, "stream", "--duration", "1s", "--to", "rtp://127.0.0.1:5004", "--sdp", directory.path("a.sdp")],
      in: directory)
    #expect(result.status == 0, "\(result.error)")
    #expect(result.error.contains("vivid"))
    let formats = result.log.values(of: "format")
    let expected = "1280x720 at 30 fps, NV12 (no copy"
    #expect(formats.count == 1 && formats.allSatisfy { $0.hasPrefix(expected) }, "\(formats)")
  }

  @Test(arguments: [
    ("--size 1282x722", Int32(64), "nearest"), ("--size 1280x720 --fps 200", 64, "nearest"),
    ("--format mjpeg", 64, "MJPG"),
  ])
  func `a request that the camera cannot serve is refused, with the choices`(
    arguments: String, status: Int32, words: String
  ) throws {
    let directory = try TemporaryDirectory()
    let result = try Subprocess.run(
      [nightjarPath, "stream", "--source", try Vivid.node(0), "--duration", "1s"]
        + arguments.split(separator: " ").map(String.init), in: directory)
    #expect(result.status == status, "\(result.error)")
    #expect(result.error.contains(words), "\(result.error)")
  }

  @Test func `a camera in use is refused, with the name of who holds it`() throws {
    let directory = try TemporaryDirectory()
    let node = try Vivid.node(0)
    let holder = try Subprocess(
      [nightjarPath, "stream", "--source", node, "--to", "rtp://127.0.0.1:5004", "--sdp", directory.path("h.sdp")],
      in: directory)
    #expect(eventually { holder.log.isStreaming })
    let second = try Subprocess.run([nightjarPath, "stream", "--source", node, "--duration", "1s"], in: directory)
    holder.send(SIGINT)
    #expect(try holder.wait(limit: 30).status == 0)
    #expect(second.status == 75, "\(second.error)")
    #expect(second.error.contains("nightjar") && second.error.contains("\(holder.identifier)"), "\(second.error)")
  }

  @Test func `a node that is no camera is refused`() throws {
    let directory = try TemporaryDirectory()
    // vicodec and vim2m are memory to memory.
    let result = try Subprocess.run(
      [nightjarPath, "stream", "--source", "/dev/video0", "--duration", "1s"], in: directory)
    #expect(result.status == 66, "\(result.error)")
  }

  @Test func `buffers that the driver marks as broken are dropped and counted, and the stream goes on`() throws {
    let directory = try TemporaryDirectory()
    let node = try Vivid.node(0)
    let stream = try LoggedStream(["--source", node], in: directory)
    #expect(eventually { stream.program.log.isStreaming })
    try Vivid.set(node, "inject_v4l2_buf_flag_error=1", in: directory)
    #expect(stream.says("marked some as broken"), "\(stream.program.errorSoFar)")
    let before = stream.packets.units.count
    #expect(eventually { stream.packets.units.count > before + 30 }, "\(stream.program.errorSoFar)")
    let frames = try stream.finish()["frames"] as? [String: Any]
    let causes = frames?["dropped_by_cause"] as? [String: Int]
    #expect(causes?["driver_error"] ?? 0 >= 1)
    #expect(frames?["sent"] as? Int ?? 0 > 30)
  }

  @Test func `another signal at an HDMI input ends a stream that is to end, with one line and 69`() throws {
    let directory = try TemporaryDirectory()
    let node = try Vivid.node(0)
    try Vivid.control(node, ["-i", "3"], in: directory)
    defer {
      try? Vivid.set(node, "dv_timings_signal_mode=0", in: directory)
      try? Vivid.control(node, ["-i", "0"], in: directory)
    }
    let program = try Subprocess(
      [
        nightjarPath, "stream", "--source", node, "--on-loss", "exit", "--to", "rtp://127.0.0.1:5004", "--sdp",
        directory.path("s.sdp"),
      ], in: directory)
    #expect(eventually { program.log.isStreaming })
    try Vivid.control(node, ["-c", "dv_timings=0", "-c", "dv_timings_signal_mode=4"], in: directory)
    let result = try program.wait(limit: 30)
    #expect(result.status == 69, "\(result.error)")
    let reason = "\(node): the signal at its input changed to 640x480, the stream has "
    let last = result.log.failures.last ?? ""
    #expect(last.hasPrefix(reason) && last.hasSuffix(": restart the stream"), "\(result.error)")
  }

  @Test func `flips that a killed run left in the driver are told with their mend`() throws {
    let directory = try TemporaryDirectory()
    let node = try Vivid.node(0)
    defer {
      try? Vivid.set(node, "horizontal_flip=0", in: directory)
      try? Vivid.set(node, "vertical_flip=0", in: directory)
    }
    let arguments = [
      nightjarPath, "stream", "--source", node, "--orientation", "180", "--control", "none", "--to",
      "rtp://127.0.0.1:5004", "--sdp", directory.path("k.sdp"),
    ]
    let killed = try Subprocess(arguments, in: directory)
    #expect(eventually { killed.log.isStreaming })
    killed.send(SIGKILL)
    _ = try killed.wait(limit: 30)
    #expect(!killed.errorSoFar.contains("already"))
    let next = try Subprocess.run(arguments + ["--duration", "1s"], in: directory)
    #expect(next.status == 0, "\(next.error)")
    func warning(_ control: String) -> String {
      "\(node): \(control) is already 1, and nightjar rotates on top of that. If a killed program left that value, "
        + "reset it: v4l2-ctl -d \(node) -c \(control)=0"
    }
    #expect(next.log.lines.count { $0.hasSuffix(warning("horizontal_flip")) } == 1, "\(next.error)")
    // As it found it.
    try Vivid.set(node, "horizontal_flip=0", in: directory)
    let vertical = try Subprocess.run(arguments + ["--duration", "1s"], in: directory)
    #expect(vertical.log.lines.count { $0.hasSuffix(warning("vertical_flip")) } == 1, "\(vertical.error)")
    try Vivid.set(node, "vertical_flip=0", in: directory)
    let last = try Subprocess.run(arguments + ["--duration", "1s"], in: directory)
    #expect(last.status == 0 && !last.error.contains("already"), "\(last.error)")
  }

  @Test func `a camera that is pulled out ends a stream that is to end, with one line and 69`() throws {
    let directory = try TemporaryDirectory()
    let node = try Vivid.node(1)
    let program = try Subprocess(
      [
        nightjarPath, "stream", "--source", node, "--on-loss", "exit", "--to", "rtp://127.0.0.1:5004", "--sdp",
        directory.path("u.sdp"),
      ], in: directory)
    #expect(eventually { program.log.isStreaming })
    try Vivid.set(node, "disconnect=1", in: directory)
    let result = try program.wait(limit: 30)
    #expect(result.status == 69, "\(result.error)")
    #expect(result.error.split(separator: "\n").last?.hasPrefix("nightjar: ") == true, "\(result.error)")
  }
}
