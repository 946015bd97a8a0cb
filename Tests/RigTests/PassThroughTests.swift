import Foundation
import Platform
import TestSupport
import Testing

/// The H.264 of a USB webcam, passed on as it is.
@Suite(.serialized, .enabled(if: Vivid.isHere)) struct PassThroughRigTests {
  /// A clip of 90 pictures, of which each differs from the others, with a key frame each second.
  private static func clip(in directory: TemporaryDirectory, _ options: String...) throws -> String {
    let path = directory.path("camera.h264")
    let result = try Subprocess.run(
      [
        "ffmpeg", "-nostdin", "-v", "error", "-f", "lavfi", "-i", "testsrc2=s=640x480:r=30", "-frames:v", "90", "-c:v",
        "libx264", "-preset", "veryfast", "-tune", "zerolatency", "-g", "30", "-b:v", "1M", "-pix_fmt", "yuv420p",
      ] + options + ["-f", "h264", "-y", path], in: directory)
    try #require(result.status == 0, "\(result.error)")
    return path
  }

  /// A program that streams the camera's own H.264 to a recorder.
  private struct Stream {
    let program: Subprocess
    let recorder: DatagramRecorder
    let heartbeat: Heartbeat
    let socket: String
    let directory: TemporaryDirectory

    init(_ camera: UVCCamera, _ arguments: [String] = [], in directory: TemporaryDirectory) throws {
      self.directory = directory
      recorder = try DatagramRecorder()
      heartbeat = try Heartbeat()
      socket = directory.path("control")
      program = try Subprocess(
        [
          nightjarPath, "stream", "--source", try #require(camera.node), "--encoder", "camera", "--size", "640x480",
          "--fps", "30", "--control", socket, "--to", "rtp://127.0.0.1:\(recorder.port)", "--sdp",
          directory.path("s.sdp"), "--stats-json", directory.path("figures.json"),
        ] + arguments, in: directory)
      try #require(
        eventually { recorder.count > 10 || !program.isRunning } && program.isRunning, "\(program.errorSoFar)")
    }

    func control(_ words: String...) throws {
      let result = try Subprocess.run([nightjarPath, "ctl", "--socket", socket] + words, in: directory)
      #expect(result.status == 0, "\(result.error)")
    }

    func says(_ words: String, times: Int = 1) -> Bool {
      eventually(within: 60) { program.errorSoFar.components(separatedBy: words).count > times }
    }

    /// The number of times that it has lost its camera because the machine was held up.
    var stalls: Int { heartbeat.stalls(in: program.errorSoFar) }

    /// Ends it; its figures, and what was received as one stream without a gap.
    func finish() throws -> (figures: [String: Any], recording: StreamRecording) {
      program.send(SIGTERM)
      let result = try program.wait(limit: 60)
      #expect(result.status == 0, "\(result.error)")
      let data = try Data(contentsOf: URL(fileURLWithPath: directory.path("figures.json")))
      let figures = try JSONSerialization.jsonObject(with: data) as? [String: Any] ?? [:]
      return (figures, try StreamRecording(recorder.finish()))
    }
  }

  private static func encoder(_ figures: [String: Any], _ name: String) -> Int {
    (figures["encoder"] as? [String: Any])?[name] as? Int ?? -1
  }

  @Test func `every picture arrives bit for bit, and the camera gets the bitrate`() throws {
    let directory = try TemporaryDirectory()
    let path = try Self.clip(in: directory)
    let camera = try UVCCamera(jpegs: ["640x480"], h264: ["640x480:\(path)"], in: directory)
    let stream = try Stream(camera, ["--bitrate", "1500k"], in: directory)
    #expect(eventually(within: 120) { stream.recorder.count > 600 })
    let state = try camera.state()
    #expect(state.format == "H264 640x480" && state.bitrate == 1_500_000, "\(state)")
    let (figures, recording) = try stream.finish()
    let pictures = try StreamRecording.checksums(of: path, in: directory)
    try #require(Set(pictures).count == 90)
    let received = recording.checksums.compactMap { pictures.firstIndex(of: $0) }
    // A machine that is held up may lose the camera for a moment; all else is the camera's.
    #expect(received.count == recording.checksums.count || stream.stalls > 0, "\(recording.checksums)")
    #expect(received.first == 0 && received.count > 100, "\(received)")
    // One after the other; the clip begins again at its end, and a key frame on request is a later one.
    for (former, next) in zip(received, received.dropFirst()) {
      #expect(next == (former + 1) % 90 || next.isMultiple(of: 30), "\(former), then \(next)")
    }
    let frames = figures["frames"] as? [String: Any] ?? [:]
    #expect(Self.encoder(figures, "frames_passed") == received.count, "\(figures)")
    // Nothing but what a slow machine's driver leaves out by itself, and the pictures that need it.
    let causes = (frames["dropped_by_cause"] as? [String: Int] ?? [:]).filter { $0.value > 0 }
    #expect(Set(causes.keys).isSubset(of: ["driver", "undecodable"]), "\(frames)")
  }

  @Test func `the sensor lock finds out what has settled while the camera's H.264 is passed on`() throws {
    let directory = try TemporaryDirectory()
    let camera = try UVCCamera(
      jpegs: ["640x480"], h264: ["640x480:\(try Self.clip(in: directory))"], in: directory)
    let stream = try Stream(camera, ["--sensor-lock"], in: directory)
    #expect(stream.says("sensor locked: "), "\(stream.program.errorSoFar)")
    #expect(try camera.state().format == "H264 640x480")
    #expect(try camera.state().controls["auto_exposure"] == 1)
    _ = try stream.finish()
  }

  @Test func `a viewer that joins gets a key frame by the camera's own control`() throws {
    let directory = try TemporaryDirectory()
    let path = try Self.clip(in: directory, "-g", "90")
    let camera = try UVCCamera(jpegs: ["640x480"], h264: ["640x480:\(path)"], in: directory)
    let stream = try Stream(camera, ["--keyframe-interval", "60s"], in: directory)
    let before = try camera.state().keyFrameRequests
    let other = try UDPPort.free()
    try stream.control("add", "rtp://127.0.0.1:\(other)")
    #expect(try eventually { try camera.state().keyFrameRequests > before })
    _ = try stream.finish()
  }

  /// The kernel's driver for webcams lends the extension unit's controls to V4L2 on request (`UVCIOC_CTRL_MAP`): then the
  /// camera has the controls that a driver of a coding camera has, and the same camera behind them.
  private static func mapControls(of node: String, keyFrameKind: Int, in directory: TemporaryDirectory) throws {
    let script = """
      import fcntl, os, struct, sys
      unit = bytes.fromhex("41769ea204dee3478b2bf4341aff003b")
      node = os.open(sys.argv[1], os.O_RDWR)
      # V4L2_CID_MPEG_VIDEO_BITRATE, an integer: dwAverageBitrate. V4L2_CID_MPEG_VIDEO_FORCE_KEY_FRAME: wPicType.
      kind = int(sys.argv[2])
      for id, name, selector, size, offset, kind in [(0x9909cf, b"bitrate", 0x0e, 32, 48, 1), (0x9909e5, b"key", 9, 16, 16, kind)]:
          mapping = struct.pack("@I32s16sBBBIIPI4I", id, name, unit, selector, size, offset, kind, 2, 0, 0, 0, 0, 0, 0)
          mapping += bytes(-len(mapping) % 8)
          fcntl.ioctl(node, 3 << 30 | len(mapping) << 16 | ord("u") << 8 | 0x20, mapping)
      """
    let result = try Subprocess.run(["python3", "-c", script, node, "\(keyFrameKind)"], in: directory)
    try #require(result.status == 0, "\(result.error)")
  }

  /// Of a button (`V4L2_CTRL_TYPE_BUTTON`) the kernel's driver makes -1, which the camera refuses.
  @Test(arguments: [(1, 1), (4, 2)])
  func `a driver's own controls for bitrate and key frames go before the extension unit`(
    keyFrameKind: Int, pictureType: Int
  ) throws {
    let directory = try TemporaryDirectory()
    let path = try Self.clip(in: directory, "-g", "90")
    let camera = try UVCCamera(jpegs: ["640x480"], h264: ["640x480:\(path)"], in: directory)
    try Self.mapControls(of: try #require(camera.node), keyFrameKind: keyFrameKind, in: directory)
    let stream = try Stream(camera, ["--keyframe-interval", "60s", "--bitrate", "1500700"], in: directory)
    // The driver's control has steps of a thousand; the extension unit takes any number.
    #expect(try eventually { try camera.state().bitrate == 1_500_000 })
    let before = try camera.state().keyFrameRequests
    try stream.control("add", "rtp://127.0.0.1:\(try UDPPort.free())")
    #expect(try eventually { try camera.state().keyFrameRequests > before })
    // The driver's control is set to 1; the extension unit is asked for new parameter sets too, which is 2.
    #expect(try camera.state().lastPictureType == pictureType)
    let (figures, _) = try stream.finish()
    #expect(Self.encoder(figures, "frames_passed") > 0, "\(figures)")
  }

  @Test func `a camera that repeats its coded picture is frozen, and one that goes on is not`() throws {
    let directory = try TemporaryDirectory()
    let camera = try UVCCamera(jpegs: ["640x480"], h264: ["640x480:\(try Self.clip(in: directory))"], in: directory)
    let stream = try Stream(camera, in: directory)
    try camera.command("freeze")
    try #require(stream.says("picture frozen since"), "\(stream.program.errorSoFar)")
    try camera.command("resume")
    try #require(stream.says("picture moves again"), "\(stream.program.errorSoFar)")
    #expect(try camera.state().format == "H264 640x480")
    try camera.command("stall")
    try #require(stream.says("no picture for 2 seconds"), "\(stream.program.errorSoFar)")
    try camera.command("resume")
    try #require(stream.says("camera is back after"), "\(stream.program.errorSoFar)")
    _ = try stream.finish()
  }

  @Test(arguments: [runsLong ? 20 : 3])
  func `a picture that rotates is encoded, and one that is upright again is passed on`(turns: Int) throws {
    let directory = try TemporaryDirectory()
    let camera = try UVCCamera(
      jpegs: ["640x480"], h264: ["640x480:\(try Self.clip(in: directory))"], in: directory)
    let stream = try Stream(camera, in: directory)
    for turn in 1...turns {
      try stream.control("rotate", "90")
      try #require(stream.says("are encoded here: the picture is rotated", times: turn), "\(stream.program.errorSoFar)")
      #expect(try camera.state().format != "H264 640x480")
      // The log may say so before the first picture of the encoder has left.
      let encoded = stream.recorder.count
      #expect(eventually { stream.recorder.count > encoded + 30 })
      try stream.control("rotate", "0")
      try #require(stream.says("H.264 is passed on again", times: turn), "\(stream.program.errorSoFar)")
      let passed = stream.recorder.count
      #expect(eventually { stream.recorder.count > passed + 30 })
    }
    let log = stream.program.errorSoFar
    let (figures, recording) = try stream.finish()
    let rotated = (0..<turns).flatMap { _ in ["480x640", "640x480"] }
    #expect(recording.sizes == ["640x480"] + rotated, "\(log)")
    // Where a machine that is held up loses the camera of a rotated picture, the encoder stays.
    let changes = turns...turns + stream.stalls
    #expect(changes.contains { Self.encoder(figures, "handovers") == 2 * $0 + 1 }, "\(figures)")
  }

  @Test(arguments: [runsLong ? 20 : 3])
  func `a webcam that is pulled out is replaced, and its H.264 goes on in the same stream`(cycles: Int) throws {
    let directory = try TemporaryDirectory()
    let camera = try UVCCamera(
      jpegs: ["640x480"], h264: ["640x480:\(try Self.clip(in: directory))"], in: directory)
    let stream = try Stream(camera, in: directory)
    for cycle in 1...cycles {
      let count = stream.recorder.count
      try camera.command("unplug")
      try #require(stream.says("the camera was unplugged", times: cycle), "\(stream.program.errorSoFar)")
      #expect(eventually { stream.recorder.count > count + 5 })
      // A machine that is held up may have lost the camera besides.
      let returns = stream.program.errorSoFar.components(separatedBy: "camera is back after").count
      try camera.command("plug")
      try #require(stream.says("camera is back after", times: returns), "\(stream.program.errorSoFar)")
      let passed = stream.recorder.count
      #expect(eventually { stream.recorder.count > passed + 30 })
      #expect(try camera.state().format == "H264 640x480")
    }
    let (figures, recording) = try stream.finish()
    #expect(Set(recording.pictures) == ["640x480"])
    #expect(Self.encoder(figures, "handovers") == 2 * (cycles + stream.stalls) + 1, "\(figures)")
  }

  @Test func `H.264 that viewers may not have is not passed on, and the reason is told`() throws {
    let directory = try TemporaryDirectory()
    let path = try Self.clip(in: directory, "-profile:v", "high", "-bf", "0")
    let camera = try UVCCamera(jpegs: ["640x480"], h264: ["640x480:\(path)"], in: directory)
    let stream = try Stream(camera, ["--profile", "baseline"], in: directory)
    #expect(stream.says("its profile is high, and viewers may have baseline only"), "\(stream.program.errorSoFar)")
    #expect(try camera.state().format != "H264 640x480")
    let (figures, recording) = try stream.finish()
    #expect(!recording.pictures.isEmpty && Self.encoder(figures, "frames_passed") == 0, "\(figures)")
  }
}
