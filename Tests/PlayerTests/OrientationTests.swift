import Foundation
import Media
import TestSupport
import Testing

/// The program's picture rotated while it streams, as players see it.
@Suite(.serialized) struct OrientationTests {
  /// A program that streams and is told what to do.
  private struct Stream {
    let directory: TemporaryDirectory
    let program: Subprocess
    var socket: String { directory.path("control") }

    /// - Parameter before: The program, with its arguments, that runs nightjar.
    init(_ arguments: [String], before: [String] = [], environment: [String: String] = [:]) throws {
      directory = try TemporaryDirectory()
      program = try Subprocess(
        before + [
          // A busy machine is no hung driver.
          nightjarPath, "stream", "--size", "320x240", "--hang-limit", "100", "--control", directory.path("control"),
          "--sdp", directory.path("s.sdp"), "--stats-json", directory.path("s.json"),
        ] + arguments, in: directory, environment: environment)
    }

    func control(_ arguments: String...) throws -> Subprocess.Result {
      try Subprocess.run([nightjarPath, "ctl"] + arguments + ["--socket", socket], in: directory)
    }

    /// Rotates the picture; by curl, which starts sooner than `nightjar ctl`.
    func rotate(_ degrees: Int) throws {
      let result = try Subprocess.run(
        [
          "curl", "-sSf", "--max-time", "100", "--unix-socket", socket, "-X", "PUT", "-d", "{\"degrees\":\(degrees)}",
          "http://localhost/v1/orientation",
        ], in: directory)
      #expect(result.status == 0, "\(result.error)")
    }

    /// Returns the orientation of the pictures, as the status tells it.
    func orientation() throws -> [String: Any] {
      let answer = try JSONSerialization.jsonObject(with: control("status", "--json").output) as? [String: Any]
      let camera = (answer?["cameras"] as? [[String: Any]])?.first
      return camera?["orientation"] as? [String: Any] ?? [:]
    }

    /// Waits until the encoder has changed the aspect for the `number`th time. The answer to a rotation comes sooner
    /// where the encoder of a busy machine is late, and the next rotation would take its place.
    func awaitSwitch(_ number: Int) throws {
      try #require(try eventually { try orientation()["switches"] as? Int == number }, "\(program.errorSoFar)")
    }

    /// Waits until the program listens for commands.
    func waitUntilReady() throws {
      try #require(try eventually { try control("status").status == 0 }, "\(program.errorSoFar)")
    }

    /// Ends it; its figures.
    func end() throws -> [String: Any] {
      program.send(SIGTERM)
      let result = try program.wait()
      #expect(result.status == 0, "\(result.error)")
      let figures = try JSONSerialization.jsonObject(with: Data(contentsOf: directory.url.appending(path: "s.json")))
      return try #require(figures as? [String: Any])
    }
  }

  private static func frames(_ figures: [String: Any], _ name: String) throws -> Int {
    try #require((figures["frames"] as? [String: Any])?[name] as? Int)
  }

  @Test(arguments: [[], ["--no-standby"], ["--preset", "active-transcoding"]])
  func `twenty rotations are one stream, without a missing picture`(arguments: [String]) throws {
    let recorder = try DatagramRecorder()
    let stream = try Stream(["--source", "test", "--to", "rtp://127.0.0.1:\(recorder.port)"] + arguments)
    try stream.waitUntilReady()
    // A picture of before the first rotation.
    try #require(eventually(within: 90) { recorder.count > 0 }, "\(stream.program.errorSoFar)")
    for turn in 0..<20 {
      try stream.rotate(turn.isMultiple(of: 2) ? 90 : 0)
      try stream.awaitSwitch(turn + 1)
      let count = recorder.count
      try #require(eventually { recorder.count > count })
    }
    let figures = try stream.end()
    let recording = try StreamRecording(recorder.finish())
    #expect(try recording.pictures.count == Self.frames(figures, "sent"))
    #expect(recording.sizes == (0...20).map { $0.isMultiple(of: 2) ? "320x240" : "240x320" })
    #expect((figures["encoder"] as? [String: Any])?["switches"] as? Int == 20)
  }

  /// A preset of one's own: the encoder is not exchanged for a faster one, which would begin with a key frame and take other memory.
  #if X264
    private static let preset = ["--x264-preset", "ultrafast"]
  #else
    private static let preset = ["--vaapi-quality", "4"]
  #endif

  @Test func `a half rotation needs no key frame`() throws {
    let recorder = try DatagramRecorder()
    let stream = try Stream(
      ["--source", "test", "--to", "rtp://127.0.0.1:\(recorder.port)", "--keyframe-interval", "600s"] + Self.preset)
    try stream.waitUntilReady()
    for degrees in [180, 0] {
      try stream.rotate(degrees)
      let count = recorder.count
      #expect(eventually { recorder.count > count + 10 })
    }
    let figures = try stream.end()
    #expect(try Self.frames(figures, "key_frames") == 1)
    #expect(try StreamRecording(recorder.finish()).pictures.count == Self.frames(figures, "sent"))
  }

  @Test func `a rotation without memory is refused and reported once, and the stream continues`() throws {
    let recorder = try DatagramRecorder()
    // A thread with memory of its own maps 128 MB at first and returns half of it, so the size would tell little.
    let stream = try Stream(
      [
        "--source", "test", "--size", "3840x2160", "--fps", "5", "--no-standby", "--no-load-adaptation", "--to",
        "rtp://127.0.0.1:\(recorder.port)",
      ] + Self.preset, before: ["prlimit", "--stack=\(2 << 20)"], environment: ["MALLOC_ARENA_MAX": "1"])
    try stream.waitUntilReady()
    func awaitPictures() throws {
      let count = recorder.timestampCount
      try #require(eventually { recorder.timestampCount > count + 2 }, "\(stream.program.errorSoFar)")
    }
    // All that it needs for a picture, it has by then.
    try awaitPictures()
    let status = try KernelFile.text("/proc/\(stream.program.identifier)/status")
    let line = try #require(status.split(separator: "\n").first { $0.hasPrefix("VmSize:") })
    let used = try #require(line.split(separator: " ").compactMap { Int($0) }.first)
    func limit(_ bytes: String) throws {
      let result = try Subprocess.run(
        ["prlimit", "--pid", "\(stream.program.identifier)", "--as=\(bytes):"], in: stream.directory)
      #expect(result.status == 0, "\(result.error)")
    }
    // Room for several threads, and for no picture of this size, which has 12 MB.
    try limit("\((used + 10_000) * 1024)")
    let refusal = "the picture cannot rotate to 90 degrees: no memory for the frame pool"
    for _ in 0..<2 {
      var refused = try stream.control("rotate", "90")
      // The answer comes without the refusal where the camera of a busy machine is late.
      for _ in 0..<5 where refused.status == 0 { refused = try stream.control("rotate", "90") }
      #expect(refused.status == 71, "\(refused.error)")
      #expect(refused.error.hasPrefix("nightjar: " + refusal) && refused.error.hasSuffix("it stays at 0\n"))
    }
    func reports() -> Int { stream.program.errorSoFar.components(separatedBy: refusal).count - 1 }
    #expect(eventually { reports() > 0 }, "\(stream.program.errorSoFar)")
    // The log is written once a second.
    usleep(1_500_000)
    #expect(reports() == 1, "\(stream.program.errorSoFar)")
    let now = try stream.orientation()
    #expect(now["degrees"] as? Int == 0 && now["mirrored"] as? Bool == false, "\(now)")
    #expect(now["width"] as? Int == 3840 && now["height"] as? Int == 2160, "\(now)")
    try limit("unlimited")
    try stream.rotate(90)
    // The answer comes without the rotation where the encoder of a busy machine is late.
    try stream.awaitSwitch(1)
    try awaitPictures()
    let figures = try stream.end()
    #expect((figures["encoder"] as? [String: Any])?["switches"] as? Int == 1)
    #expect(try Self.frames(figures, "sent") > 5)
    _ = recorder.finish()
  }

  @Test func `rotations faster than the pictures become one rotation, the last`() throws {
    let recorder = try DatagramRecorder()
    let stream = try Stream(["--source", "test", "--fps", "5", "--to", "rtp://127.0.0.1:\(recorder.port)"])
    try stream.waitUntilReady()
    for degrees in [90, 0, 270, 180, 90, 0, 90] { try stream.rotate(degrees) }
    let count = recorder.count
    #expect(eventually { recorder.count > count + 5 })
    let figures = try stream.end()
    let recording = try StreamRecording(recorder.finish())
    #expect(try recording.pictures.count == Self.frames(figures, "sent"))
    #expect(recording.pictures.last == "240x320")
  }

  @Test func `a rotation arrives as the picture was rotated`() throws {
    let recorder = try DatagramRecorder()
    let stream = try Stream(
      ["--source", "test", "--orientation", "90", "--to", "rtp://127.0.0.1:\(recorder.port)"])
    #expect(eventually(within: 90) { recorder.count > 0 }, "\(stream.program.errorSoFar)")
    _ = try stream.end()
    #expect(try StreamRecording(recorder.finish()).sizes == ["240x320"])
  }

  /// The codec, the knobs of the tests' driver, and the call that fails once; hardware that fails for good needs x264 or x265 to
  /// go on.
  private static let hardware: [(VideoCodec, [String: String], String?)] = {
    var cases: [(VideoCodec, [String: String], String?)] = [
      (.h264, [:], nil), (.h264, ["PROCESS": "none"], nil), (.h264, [:], "process"), (.hevc, [:], nil),
      (.hevc, ["PACKED": "none"], nil),
    ]
    #if X264
      cases.append((.h264, [:], "end"))
    #endif
    #if X265
      cases.append((.hevc, [:], "end"))
    #endif
    return cases
  }()

  @Test(arguments: hardware)
  func `hardware that rotates pictures, or stops rotating them, loses no picture`(
    codec: VideoCodec, knobs: [String: String], failing: String?
  ) throws {
    try #require(StrictVADriver.isBuilt)
    let recorder = try DatagramRecorder()
    let place = try TemporaryDirectory()
    let node = place.path("node")
    try Data().write(to: URL(fileURLWithPath: node))
    let stream = try Stream(
      [
        "--source", "test", "--codec", codec.rawValue, "--vaapi-device", node, "--to",
        "rtp://127.0.0.1:\(recorder.port)",
        // A picture that is refused together with another quality level is sent again, and is no failure.
      ] + (failing == "end" ? ["--vaapi-quality", "4"] : []),
      environment: StrictVADriver.environment(
        node: node, log: place.path("log"), knobs: knobs.merging(["CONTROL": place.path("knobs")]) { $1 }))
    // A picture of before the first rotation, which may come before any picture otherwise.
    try #require(eventually { recorder.count > 14 }, "\(stream.program.errorSoFar)")
    for turn in 1...8 {
      try stream.rotate(turn * 90 % 360)
      try stream.awaitSwitch(turn)
      // A key frame of up to eight packets, and some pictures of one or two.
      let count = recorder.count
      try #require(eventually { recorder.count > count + 14 })
      // The encoders of both sizes have been tried out by now: what fails is a picture of the stream.
      if turn == 2, let failing {
        try Data("fail=\(failing)\n".utf8).write(to: URL(fileURLWithPath: place.path("knobs")), options: .atomic)
      }
    }
    let figures = try stream.end()
    let encoder = try #require(figures["encoder"] as? [String: Any])
    let recording = try StreamRecording(recorder.finish(), codec: codec)
    #expect(try recording.pictures.count == Self.frames(figures, "sent"))
    let drops = try #require((figures["frames"] as? [String: Any])?["dropped_by_cause"] as? [String: Int])
    // What was not captured at all on a busy machine is no loss of this, nor what comes too early for its encoder.
    let missed = try #require(drops["encoder_late"]) + Self.frames(figures, "thinned")
    #expect(try Self.frames(figures, "captured") == Self.frames(figures, "encoded") + missed, "\(figures)")
    #expect(drops["encoder_error"] == 0)
    #expect(recording.sizes == (0...8).map { $0.isMultiple(of: 2) ? "320x240" : "240x320" })
    #expect(encoder["switches"] as? Int == 8)
    #expect(StrictVADriver.violations(in: place.path("log")) == [])
    let turned = try #require(encoder["frames_turned"] as? Int)
    let complaints = stream.program.log.lines.filter { $0.hasPrefix("the CPU rotates pictures from now on: ") }
    #expect((turned > 0) == (knobs["PROCESS"] == nil), "\(encoder)")
    #expect(encoder["failovers"] as? Int == (failing == "end" ? 1 : 0), "\(encoder)")
    #expect(complaints.count == (failing == "process" ? 1 : 0), "\(stream.program.errorSoFar)")
  }

  @Test func `GStreamer continues to show pictures through twenty rotations`() throws {
    let port = try UDPPort.free()
    let stream = try Stream(["--source", "test", "--to", "rtp://127.0.0.1:\(port)"])
    try stream.waitUntilReady()
    let viewer = try Subprocess(
      [
        "gst-launch-1.0", "-v", "udpsrc", "port=\(port)",
        "caps=application/x-rtp,media=video,clock-rate=90000,encoding-name=H264,payload=96", "!", "rtpjitterbuffer",
        "latency=50", "!", "rtph264depay", "!", "avdec_h264", "!", "videoconvert", "!", "fakesink", "name=screen",
        "sync=false",
      ], in: stream.directory)
    defer { viewer.send(SIGKILL) }
    try stream.control("keyframe").expectSuccess()
    func shown() -> [String] {
      viewer.outputSoFar.split(separator: "\n").filter { $0.contains("GstFakeSink:screen.GstPad:sink: caps") }
        .map { $0.contains("width=(int)240") ? "240x320" : "320x240" }
    }
    try #require(eventually { shown() == ["320x240"] }, "\(viewer.outputSoFar)")
    for turn in 1...20 {
      try stream.rotate(turn.isMultiple(of: 2) ? 0 : 90)
      try #require(eventually { shown().count == turn + 1 }, "after turn \(turn): \(viewer.outputSoFar.suffix(2000))")
    }
    #expect(shown() == (0...20).map { $0.isMultiple(of: 2) ? "320x240" : "240x320" })
    _ = try stream.end()
  }

  @Test func `ffplay continues to show pictures through twenty rotations`() throws {
    let port = try UDPPort.free()
    let stream = try Stream(
      ["--source", "test", "--keyframe-interval", "500ms", "--to", "rtp://127.0.0.1:\(port)"])
    try stream.waitUntilReady()
    let viewer = try Subprocess(
      [
        "ffplay", "-v", "debug", "-protocol_whitelist", "file,udp,rtp", "-fflags", "nobuffer", "-flags", "low_delay",
        "-an", "-i", stream.directory.path("s.sdp"),
      ], in: stream.directory, environment: ["SDL_VIDEODRIVER": "dummy", "SDL_RENDER_DRIVER": "software"])
    defer { viewer.send(SIGKILL) }
    func changes() -> Int { viewer.errorSoFar.components(separatedBy: "Video frame changed from size").count - 1 }
    try #require(eventually(within: 60) { changes() >= 1 }, "\(viewer.errorSoFar.suffix(2000))")
    let before = changes()
    for turn in 1...20 {
      try stream.rotate(turn.isMultiple(of: 2) ? 0 : 90)
      try #require(eventually { changes() == before + turn }, "after turn \(turn): \(viewer.errorSoFar.suffix(2000))")
    }
    _ = try stream.end()
  }

  @Test func `VLC continues through rotations of a transport stream`() throws {
    let port = try UDPPort.free()
    let stream = try Stream(
      ["--source", "test", "--keyframe-interval", "1s", "--to", "rtp://127.0.0.1:\(port)?payload=mp2t"])
    try stream.waitUntilReady()
    // VLC refuses to run as root, and wants a home that it may write.
    let home = stream.directory.url.path
    try FileManager.default.setAttributes([.posixPermissions: 0o777], ofItemAtPath: home)
    let unprivileged = getuid() == 0 ? ["setpriv", "--reuid=65534", "--regid=65534", "--clear-groups"] : []
    let viewer = try Subprocess(
      unprivileged + [
        "env", "HOME=\(home)", "XDG_RUNTIME_DIR=\(home)", "cvlc", "-vv", "--no-audio", "--vout=vdummy",
        "--network-caching=150", "rtp://@127.0.0.1:\(port)",
      ], in: stream.directory)
    defer { viewer.send(SIGKILL) }
    func shown(_ width: Int, _ height: Int) -> Int {
      // The decoder's line for each format of its output.
      viewer.errorSoFar.split(separator: "\n").count { $0.contains("\(width)x\(height)") }
    }
    try #require(eventually(within: 60) { shown(320, 240) > 0 }, "\(viewer.errorSoFar.suffix(2000))")
    var seen = (wide: shown(320, 240), high: shown(240, 320))
    for turn in 1...20 {
      let turned = !turn.isMultiple(of: 2)
      try stream.rotate(turned ? 90 : 0)
      try #require(
        eventually { turned ? shown(240, 320) > seen.high : shown(320, 240) > seen.wide },
        "after turn \(turn): \(viewer.errorSoFar.suffix(2000))")
      seen = (shown(320, 240), shown(240, 320))
    }
    _ = try stream.end()
  }

  @Test func `rotating the device rotates the picture`() throws {
    let recorder = try DatagramRecorder()
    let sensor = try TemporaryDirectory()
    let device = sensor.url.appending(path: "bus/iio/devices/iio:device0")
    try FileManager.default.createDirectory(at: device, withIntermediateDirectories: true)
    func lay(_ x: Int, _ y: Int) throws {
      for (axis, value) in [("x", x), ("y", y), ("z", 0)] {
        try "\(value)\n".write(to: device.appending(path: "in_accel_\(axis)_raw"), atomically: true, encoding: .utf8)
      }
    }
    try "accel\n".write(to: device.appending(path: "name"), atomically: true, encoding: .utf8)
    try "0.01\n".write(to: device.appending(path: "in_accel_scale"), atomically: true, encoding: .utf8)
    try lay(0, -981)
    let stream = try Stream(
      [
        "--source", "test", "--orientation", "auto", "--sysfs", sensor.url.path, "--to",
        "rtp://127.0.0.1:\(recorder.port)",
      ], environment: ["DBUS_SYSTEM_BUS_ADDRESS": "unix:path=\(sensor.url.path)/none"])
    try stream.waitUntilReady()
    let start = "orientation follows the accelerometer "
    #expect(eventually { stream.program.log.lines.count { $0.hasPrefix(start) } == 1 })
    func degrees() throws -> Int? { try stream.orientation()["degrees"] as? Int }
    try lay(981, 0)
    let left = try eventually { try degrees() == 90 }
    try lay(-981, 0)
    let right = try eventually { try degrees() == 270 }
    #expect(left && right, "\(stream.program.errorSoFar)")
    // Nonsense: the last good orientation stays.
    try "nan\n".write(to: device.appending(path: "in_accel_x_raw"), atomically: true, encoding: .utf8)
    let path = device.appending(path: "in_accel_x_raw").path
    let nonsense = "\(path) holds 'nan', which is not a finite number"
    #expect(eventually { stream.program.log.count(of: nonsense) == 1 }, "\(stream.program.errorSoFar)")
    #expect(try degrees() == 270)
    let figures = try stream.end()
    #expect(try StreamRecording(recorder.finish()).pictures.count == Self.frames(figures, "sent"))
  }
}

extension Subprocess.Result {
  fileprivate func expectSuccess() {
    #expect(status == 0, "\(error)")
  }
}
