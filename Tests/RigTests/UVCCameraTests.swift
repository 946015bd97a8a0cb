import Foundation
import Platform
import TestSupport
import Testing

/// The kernel's driver of USB webcams, with a webcam that does what real ones do.
@Suite(.serialized, .enabled(if: Vivid.isHere)) struct UVCCameraTests {
  private func v4l2(_ camera: UVCCamera, _ arguments: String..., in directory: TemporaryDirectory) throws -> String {
    let node = try #require(camera.node)
    let result = try Subprocess.run(["v4l2-ctl", "-d", node] + arguments, in: directory)
    return result.outputText + result.error
  }

  /// Streams `format` while `command` makes the camera's pictures go wrong, and checks that each of the others was seen
  /// once, in order, or was counted as lost.
  private func receive(
    _ format: String, size: (width: Int, height: Int), numberedModulo modulus: Int, from camera: UVCCamera,
    command: String, until isDone: (UVCCamera.State) -> Bool, in directory: TemporaryDirectory
  ) throws -> Reception {
    let heartbeat = try Heartbeat()
    let reception = try Reception.ofH264(
      [
        "--source", try #require(camera.node), "--format", format, "--size", "\(size.width)x\(size.height)", "--fps",
        "30", "--control", "none",
      ], size: size, in: directory
    ) { program in
      let begin = try camera.state().frames
      #expect(try eventually { try camera.state().frames > begin + 20 })
      try camera.command(command)
      #expect(try eventually { isDone(try camera.state()) })
      let end = try camera.state().frames
      #expect(try eventually { try camera.state().frames > end + 100 })
      program.send(SIGTERM)
    }
    let numbers = try NumberedPictures.read(reception.pictures, width: size.width, height: size.height)
    #expect(reception.isWhole, "\(reception.receiverLog) \(reception.log) \(numbers)")
    // More than 120 at the full rate; a loaded machine may lose some, and then says so.
    #expect(reception.pictureCount >= 50, "\(reception.log)")
    // Half a round of the JPEGs is a second of them, for which the machine may be held up.
    let steps = NumberedPictures.steps(numbers, modulo: modulus, mayLeap: heartbeat.longestPause > 0.5)
    #expect(steps.allSatisfy { $0 >= 1 }, "\(numbers), held up for \(heartbeat.longestPause) s")
    let missing = steps.reduce(0) { $0 + $1 - 1 }
    #expect(missing <= reception.figure("frames", "dropped") + (try camera.state().late), "\(reception.log) \(numbers)")
    // What went wrong is missing in the midst, and the stream went on behind it.
    #expect(steps.dropLast(10).contains { $0 > 1 }, "\(numbers)")
    return reception
  }

  @Test func `damaged JPEGs are dropped and counted, and the stream stays whole`() throws {
    let directory = try TemporaryDirectory()
    let camera = try UVCCamera(in: directory)
    let reception = try receive(
      "mjpeg", size: (1280, 720), numberedModulo: NumberedPictures.clipLength, from: camera, command: "corrupt 9",
      until: { $0.corrupted == 9 }, in: directory)
    let corrupt = reception.figure("frames", "dropped_by_cause", "corrupt")
    let lost = ["driver", "capture_late"].map { reception.figure("frames", "dropped_by_cause", $0) }.reduce(0, +)
    // Three of each kind; a loaded machine may have lost some, or have had newer ones, before they were looked at.
    #expect(corrupt > 0 && corrupt <= 9 && corrupt + lost >= 9, "\(reception.statistics)")
    let source = try #require(reception.statistics["source"] as? [String: Any], "\(reception.statistics)")
    #expect(source["pixel_format"] as? String == "MJPG", "\(source)")
    #expect(source["conversion"] as? String == "libjpeg-turbo", "\(source)")
    let told = "  dropped \(corrupt): the camera delivered corrupt pictures"
    #expect(ProgramLog(reception.log).count(of: told) == 1, "\(reception.log)")
  }

  @Test func `YUYV pictures that come too short are lost in the driver and counted, and the stream goes on`() throws {
    let directory = try TemporaryDirectory()
    let camera = try UVCCamera(in: directory)
    let reception = try receive(
      "yuyv", size: (640, 480), numberedModulo: 1 << 16, from: camera, command: "short 5",
      until: { $0.shortened == 5 }, in: directory)
    #expect(reception.figure("frames", "dropped_by_cause", "driver") >= 5, "\(reception.statistics)")
  }

  @Test func `v4l2-ctl sees the camera, its formats and its controls`() throws {
    let directory = try TemporaryDirectory()
    let camera = try UVCCamera(jpegs: ["1280x720", "640x480"], in: directory)
    let formats = try v4l2(camera, "--all", "--list-formats-ext", in: directory)
    for words in [
      "Driver name      : uvcvideo", "Card type        : Rig Camera", "Serial           : \(camera.serial)",
      "'MJPG' (Motion-JPEG, compressed)", "'YUYV' (YUYV 4:2:2)", "Size: Discrete 1280x720", "(15.000 fps)",
    ] {
      #expect(formats.contains(words), "\(words): \(formats)")
    }
    let listed = try v4l2(camera, "--list-ctrls", in: directory)
    let lines = listed.split(separator: "\n").map { $0.trimmingCharacters(in: .whitespaces) }
    for (name, value) in try camera.state().controls where name != "auto_exposure" {
      #expect(lines.contains { $0.hasPrefix("\(name) ") && $0.contains("value=\(value)") }, "\(name): \(listed)")
    }
    for name in ["exposure_time_absolute", "white_balance_temperature", "focus_absolute"] {
      #expect(lines.contains { $0.hasPrefix("\(name) ") && $0.hasSuffix("flags=inactive") }, "\(name): \(listed)")
    }
  }

  @Test func `a control is kept by the camera, and refused while it is set automatically`() throws {
    let directory = try TemporaryDirectory()
    let camera = try UVCCamera(in: directory)
    let initial = try camera.state().controls
    let refusal = try v4l2(camera, "-c", "exposure_time_absolute=300", in: directory)
    #expect(refusal.contains("Permission denied"), "\(refusal)")
    #expect(try camera.state().controls == initial)
    for (setting, values) in [
      ("auto_exposure=1", ["auto_exposure": 1]), ("exposure_time_absolute=300", ["exposure_time_absolute": 300]),
      ("brightness=-7", ["brightness": -7]), ("power_line_frequency=1", ["power_line_frequency": 1]),
      ("white_balance_automatic=0,white_balance_temperature=3000", ["white_balance_temperature": 3000]),
    ] {
      let words = try v4l2(camera, "-c", setting, in: directory)
      #expect(words.isEmpty, "\(setting): \(words)")
      let controls = try camera.state().controls
      #expect(values.allSatisfy { controls[$0.key] == $0.value }, "\(setting): \(controls)")
    }
    // The camera is without power for a moment, and has forgotten.
    try camera.command("unplug")
    #expect(eventually { camera.node == nil })
    try camera.command("plug")
    #expect(eventually { camera.node != nil })
    #expect(try camera.state().controls == initial)
  }

  @Test func `exposure, white balance and focus settle while the camera streams`() throws {
    let directory = try TemporaryDirectory()
    let camera = try UVCCamera(in: directory)
    let before = try camera.state().controls
    let words = try v4l2(
      camera, "-v", "pixelformat=YUYV,width=1280,height=720", "--stream-mmap", "--stream-count=60", in: directory)
    #expect(try camera.state().frames >= 60, "\(words)")
    let after = try camera.state().controls
    for name in ["exposure_time_absolute", "white_balance_temperature", "focus_absolute"] {
      #expect(after[name] != before[name], "\(name) \(words)")
    }
    let listed = try v4l2(camera, "-C", "exposure_time_absolute,white_balance_temperature", in: directory)
    let line = "exposure_time_absolute: \(after["exposure_time_absolute"] ?? 0)"
    #expect(listed.split(separator: "\n").count { $0 == line } == 1, "\(listed)")
  }

  @Test func `an unplug is one for the kernel, and a replug brings the same camera back`() throws {
    let directory = try TemporaryDirectory()
    let camera = try UVCCamera(in: directory)
    for _ in 0..<3 {
      let node = try #require(camera.node)
      let viewer = try Subprocess(
        ["v4l2-ctl", "-d", node, "-v", "pixelformat=MJPG,width=1280,height=720", "--stream-mmap"], in: directory)
      #expect(try eventually { try camera.state().frames > 10 })
      #expect(try camera.state().format == "MJPG 1280x720")
      try camera.command("unplug")
      let result = try viewer.wait(limit: 30)
      // The error is ENODEV or EINVAL, as the waiting call meets the end of the node or of its queue. A viewer that does not wait just
      // then gives a buffer back instead.
      let words = result.outputText + result.error
      #expect(words.contains("VIDIOC_DQBUF: failed") || words.contains("qbuf error"), "\(words)")
      #expect(eventually { camera.node == nil })
      #expect(!FileManager.default.fileExists(atPath: node))
      try camera.command("plug")
      #expect(eventually { camera.node != nil })
    }
  }

  @Test func `a frozen picture is the same bit for bit, and a stalled camera sends none`() throws {
    let directory = try TemporaryDirectory()
    let camera = try UVCCamera(in: directory)
    func capture(_ count: Int) throws -> Int {
      let path = directory.path("frames.yuv")
      let words = try v4l2(
        camera, "-v", "pixelformat=YUYV,width=640,height=480", "--stream-mmap", "--stream-count=\(count)",
        "--stream-to=\(path)", in: directory)
      let bytes = try Data(contentsOf: URL(fileURLWithPath: path))
      try #require(bytes.count == count * 640 * 480 * 2, "\(words)")
      return Set((0..<count).map { bytes[($0 * 640 * 480 * 2)..<(($0 + 1) * 640 * 480 * 2)] }).count
    }
    #expect(try capture(6) == 6)
    try camera.command("freeze")
    #expect(try capture(6) == 1)
    try camera.command("resume")
    #expect(try capture(6) == 6)

    try camera.command("stall")
    let node = try #require(camera.node)
    let viewer = try Subprocess(["v4l2-ctl", "-d", node, "--stream-mmap", "--stream-count=5"], in: directory)
    #expect(try eventually { try camera.state().streaming })
    let frames = try camera.state().frames
    usleep(500_000)
    #expect(viewer.isRunning)
    #expect(try camera.state().frames == frames)
    try camera.command("resume")
    #expect(try viewer.wait(limit: 30).status == 0)
  }

  @Test func `in the dark the rate drops, unless the camera is told not to`() throws {
    let directory = try TemporaryDirectory()
    let camera = try UVCCamera(in: directory)
    try camera.command("rate-drop")
    let node = try #require(camera.node)
    /// The least and the most pictures that the camera saw in a second, which do not depend on who takes them; an answer of the
    /// camera may take a while.
    func rate() throws -> ClosedRange<Double> {
      let viewer = try Subprocess(
        ["v4l2-ctl", "-d", node, "-v", "pixelformat=MJPG,width=1280,height=720", "--stream-mmap"], in: directory)
      defer {
        viewer.send(SIGKILL)
        _ = try? viewer.wait(limit: 30)
      }
      #expect(try eventually { try camera.state().streaming })
      func number() throws -> (value: Int, asked: Instant, told: Instant) {
        let asked = Instant.now()
        return (try camera.state().number, asked, .now())
      }
      let first = try number()
      usleep(1_500_000)
      let last = try number()
      let count = Double(last.value - first.value)
      return count / (last.told - first.asked).seconds...count / (last.asked - first.told).seconds
    }
    let dark = try rate()
    #expect(dark.overlaps(12...18), "\(dark)")
    _ = try v4l2(camera, "-c", "exposure_dynamic_framerate=0", in: directory)
    let full = try rate()
    #expect(full.overlaps(25...35), "\(full)")
  }
}
