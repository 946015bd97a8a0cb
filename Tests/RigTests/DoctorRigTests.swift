import Foundation
import TestSupport
import Testing

/// `nightjar doctor` with the kernel's cameras: what is wrong with one is told, and done about as it says.
@Suite(.serialized, .enabled(if: Vivid.isHere)) struct DoctorRigTests {
  private let directory: TemporaryDirectory

  init() throws {
    directory = try TemporaryDirectory()
    #expect(chmod(directory.url.path, 0o777) == 0)
  }

  private func doctor(
    _ source: String, _ options: [String] = [], own: [String] = [], before: [String] = []
  ) throws -> DoctorReport {
    try DoctorReport(["--source", source, "--encoder", "x264"] + options, own: own, before: before, in: directory)
  }

  /// A report that is `right`. Where it is not, another one is made, three times at most and only if the machine was held
  /// up while the doctor measured, which lowers the rate.
  ///
  /// - Parameter isHeldUp: judges that by the report and the longest pause of a heartbeat meanwhile, in seconds.
  private func doctor(
    _ source: String, _ options: [String], isHeldUp: (DoctorReport, Double) throws -> Bool,
    right: (DoctorReport) throws -> Bool
  ) throws -> DoctorReport {
    let heartbeat = try Heartbeat()
    var report = try doctor(source, options)
    for _ in 0..<3 where try !right(report) && isHeldUp(report, heartbeat.longestPause) {
      heartbeat.forget()
      report = try doctor(source, options)
    }
    return report
  }

  /// A report on a vivid of five pictures a second: so slow that a machine reaches it that is held up for less than an
  /// interval. Half of that may be what a heartbeat sees of such a pause.
  ///
  /// A heartbeat need not see why vivid's own thread comes late by half an interval; vivid, which goes by the clock, then passes
  /// over the number of a picture. That is a loss of the driver's alone: others are the doctor's own.
  private func steadyReport(_ source: String, _ options: [String] = []) throws -> DoctorReport {
    func isHeldUp(_ report: DoctorReport, _ pause: Double) -> Bool {
      pause > 0.1 || report["rate-losses"]?.text.contains(/pictures lost: driver \d+$/) == true
    }
    return try doctor(source, options + ["--fps", "5"], isHeldUp: isHeldUp, right: { $0.has("rate") })
  }

  private func problem(_ key: String, in report: DoctorReport) throws -> DoctorReport.Finding {
    let finding = try #require(report[key], "\(report.findings)")
    #expect(finding.status == "problem" && report.exitCode == 1)
    return finding
  }

  private func mend(_ command: String?) throws {
    let result = try runMend(try #require(command), in: directory)
    #expect(result.status == 0, "\(command ?? ""): \(result.error)")
  }

  @Test func `a camera that is well reaches its rate, and its format and driver are told`() throws {
    let report = try steadyReport(try Vivid.node(0), ["--size", "640x360"])
    let rate = try #require(report["rate"], "\(report.findings)")
    #expect(rate.figures["fps_agreed"] == 5 && abs((rate.figures["fps"] ?? 0) - 5) < 0.8, "\(rate)")
    #expect(report["camera"]?.text.contains("vivid") == true && rate.text.contains("640x360"))
    #expect(report.seconds < 150)
  }

  @Test func `a camera in use is told with who has it, and free once that is ended`() throws {
    let node = try Vivid.node(0)
    let holder = try Subprocess(
      [
        nightjarPath, "stream", "--source", node, "--control", "none", "--to", "rtp://127.0.0.1:5004", "--sdp",
        directory.path("h.sdp"),
      ], in: directory)
    defer { holder.send(SIGKILL) }
    #expect(eventually { holder.log.isStreaming })
    let busy = try problem("camera-busy", in: doctor(node))
    #expect(busy.text == "\(node) is in use by nightjar (process \(holder.identifier))", "\(busy)")
    try mend(busy.commands.first)
    #expect(try holder.wait(limit: 60).status == 0)
    let mended = try steadyReport(node)
    #expect(!mended.has("camera-busy") && mended.has("rate"), "\(mended.findings)")
  }

  @Test func `a camera that a stream has is left alone, and that stream is asked`() throws {
    let node = try Vivid.node(0)
    let stream = try LoggedStream(["--source", node, "--size", "640x360"], in: directory)
    #expect(stream.says("streaming"))
    let report = try doctor(node, ["--size", "640x360"], own: ["--socket", stream.socket])
    #expect(report["camera"]?.text.hasSuffix(", in the running stream") == true, "\(report.findings)")
    #expect(report.has("rate") || report.has("rate-low"))
    // One that wants the same camera by another name is not told to kill the stream.
    let busy = try problem("camera-busy", in: doctor(node, ["--name", "other"], own: ["--socket", stream.socket]))
    #expect(busy.text == "\(node) is in use by the running stream, as a camera of another name or source", "\(busy)")
    #expect(busy.commands == ["nightjar ctl status --socket \(stream.socket)"])
    let figures = try stream.finish()
    #expect((figures["camera"] as? [String: Any])?["losses"] as? Int == stream.stalls, "\(figures)")
    #expect(stream.packets.sequenceGaps == 0)
  }

  @Test func `a codec, a size that does not exist and a refusing driver are reported`() throws {
    // vim2m and vicodec come before vivid.
    let codec = try problem("camera-other", in: doctor("/dev/video0"))
    #expect(codec.commands == ["nightjar devices"])
    let node = try Vivid.node(0)
    let format = try problem("camera-format", in: doctor(node, ["--size", "1000x1000"]))
    let nearest = try #require(format.mends.first?.advice?.split(separator: "\"").dropFirst().first, "\(format)")
    #expect(try !doctor(node, ["--size", String(nearest)]).has("camera-format"))
    try Vivid.set(node, "inject_vidioc_reqbufs_error=1", in: directory)
    _ = try problem("camera-unusable", in: doctor(node))
    // It was for once.
    #expect(try !doctor(node).has("camera-unusable"))
  }

  @Test func `an HDMI input without a signal is told, until there is one`() throws {
    let node = try Vivid.node(0)
    try Vivid.control(node, ["-i", "3"], in: directory)
    defer {
      try? Vivid.set(node, "dv_timings_signal_mode=0", in: directory)
      try? Vivid.control(node, ["-i", "0"], in: directory)
    }
    try Vivid.set(node, "dv_timings_signal_mode=1", in: directory)
    let lacking = try problem("camera-signal", in: doctor(node))
    #expect(lacking.text.contains(node) && lacking.text.contains("signal"))
    try Vivid.set(node, "dv_timings_signal_mode=0", in: directory)
    #expect(try !doctor(node).has("camera-signal"))
  }

  @Test func `a user who may not open a camera gets the reason: mode, group or an old login`() throws {
    let node = try Vivid.node(0)
    func shell(_ text: String) throws {
      #expect(try Subprocess.run(["sh", "-c", text], in: directory).status == 0)
    }
    defer { try? shell("chgrp root \(node); chmod 660 \(node)") }
    // Of Debian's users, games is in the group games alone.
    let inGroup = ["setpriv", "--reuid=games", "--regid=games", "--init-groups"]
    let before = ["setpriv", "--reuid=games", "--regid=65534", "--clear-groups"]
    try shell("chgrp games \(node) && chmod 600 \(node)")
    let mode = try problem("camera-mode", in: doctor(node, before: inGroup))
    #expect(mode.text.contains("600"))
    try mend(mode.commands.first)
    let group = try problem("camera-group", in: doctor(node, before: inGroup))
    #expect(group.commands == ["sudo usermod -aG video games"], "\(group)")
    // As if usermod had been run, whose files are this machine's own.
    try shell("chgrp games \(node)")
    let login = try problem("camera-login", in: doctor(node, before: before))
    #expect(login.mends.map(\.advice) == ["log out and in again; for one shell only: newgrp games"], "\(login)")
    // As one who has logged in again.
    let mended = try doctor(node, before: inGroup)
    #expect(mended.has("rate") || mended.has("rate-low"), "\(mended.findings)")
  }

  @Test func `a clock of another century is told, until it is set`() throws {
    let now = Date()
    #expect(try Subprocess.run(["date", "-s", "2001-02-03 04:05:06"], in: directory).status == 0)
    let report = Result { try doctor("test") }
    let back = ISO8601DateFormatter().string(from: now)
    #expect(try Subprocess.run(["date", "-s", back], in: directory).status == 0)
    #expect(try problem("clock-wrong", in: report.get()).text.contains("2001-02-03"))
    #expect(try !doctor("test").has("clock-wrong"))
  }

  @Test func `a state folder without room is told, until there is some`() throws {
    let state = directory.path("state")
    try FileManager.default.createDirectory(atPath: state, withIntermediateDirectories: true)
    #expect(try Subprocess.run(["mount", "-t", "tmpfs", "-o", "size=256k", "none", state], in: directory).status == 0)
    defer { _ = try? Subprocess.run(["umount", state], in: directory) }
    let full = try problem("state-full", in: doctor("test", ["--rtsps", "127.0.0.1:8322"]))
    try mend(full.commands.first)
    #expect(try Subprocess.run(["mount", "-o", "remount,size=8m", state], in: directory).status == 0)
    #expect(try !doctor("test", ["--rtsps", "127.0.0.1:8322"]).has("state-full"))
  }

  @Test func `a webcam that sleeps, that is too slow in the dark, and that delivers nothing`() throws {
    let camera = try UVCCamera(jpegs: ["640x360"], in: directory)
    // Half the camera's rate, so that a machine that is held up reaches it too.
    let options = ["--format", "mjpeg", "--size", "640x360", "--fps", "15"]
    /// The measured rate, in pictures a second, whether it is the agreed one or not.
    func rate(_ report: DoctorReport) throws -> Double {
      let finding = try #require(report["rate"] ?? report["rate-low"], "\(report.findings)")
      return try #require(finding.figures["fps"], "\(finding)")
    }
    var node = try #require(camera.node)
    let sleepy = try doctor(node, options)
    #expect(sleepy.has("usb"), "\(sleepy.findings)")
    if let sleep = sleepy["usb-sleep"] {
      try mend(sleep.commands.first)
      #expect(try !doctor(node, options).has("usb-sleep"))
    }
    try camera.command("rate-drop")
    let dark = try doctor(node, options)
    let low = try #require(dark["rate-low"], "\(dark.findings)")
    #expect(try rate(dark) < 10, "\(low)")
    try mend(low.commands.first)
    var late = try camera.state().late
    /// The camera counts what it could not send; the doctor loses what comes while it is held up.
    func isHeldUp(_ report: DoctorReport, pause: Double) throws -> Bool {
      let before = late
      late = try camera.state().late
      return pause > 0.2 || late - before >= 5
    }
    let full = try doctor(node, options, isHeldUp: isHeldUp) { try rate($0) > 1.3 * rate(dark) }
    #expect(try rate(full) > 1.3 * rate(dark), "\(full.findings)")
    try camera.command("stall")
    let none = try problem("rate-none", in: doctor(node, options))
    #expect(none.commands.first?.contains("authorized") == true, "\(none)")
    try camera.command("resume")
    try mend(none.commands.first)
    #expect(eventually { camera.node != nil })
    node = try #require(camera.node)
    let back = try doctor(node, options)
    #expect(back.has("rate") || back.has("rate-low"), "\(back.findings)")
  }

  @Test func `a stream that has lost its camera, or shows the same picture for ever, says so`() throws {
    let camera = try UVCCamera(jpegs: ["640x360"], in: directory)
    let node = try #require(camera.node)
    let options = ["--format", "mjpeg", "--size", "640x360"]
    let stream = try LoggedStream(["--source", node] + options, in: directory)
    #expect(stream.says("streaming"), "\(stream.program.errorSoFar)")
    let own = ["--socket", stream.socket]
    try camera.command("unplug")
    #expect(stream.says("the camera was unplugged"))
    let lost = try problem("camera-lost", in: doctor(node, options, own: own))
    #expect(lost.text.contains("disconnected") && lost.mends.first?.advice == "plug it in again", "\(lost)")
    try camera.command("plug")
    #expect(stream.says("camera is back after"))
    // The node has another number where the stream closed the old one after the camera was plugged in.
    let returned = try #require(camera.node)
    #expect(try !doctor(returned, options, own: own).has("camera-lost"))
    try camera.command("freeze")
    #expect(stream.says("picture frozen since"))
    _ = try problem("camera-frozen", in: doctor(returned, options, own: own))
    try camera.command("resume")
    #expect(eventually { stream.state == "live" })
    let mended = try doctor(returned, options, own: own)
    #expect(mended["camera"]?.status == "ok" && !mended.has("camera-frozen"), "\(mended.findings)")
    _ = try stream.finish()
  }
}
