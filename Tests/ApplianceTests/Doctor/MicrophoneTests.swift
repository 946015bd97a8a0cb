import Appliance
import Capture
import Foundation
import Sound
import TestSupport
import Testing

/// Findings of `nightjar doctor` about microphones on a machine without a sound card.
@Suite(.serialized) struct MicrophoneTests {
  private static let small = ["--source", "test", "--size", "320x240", "--fps", "15"]
  private let directory: TemporaryDirectory

  init() throws { directory = try TemporaryDirectory() }

  private func doctor(_ options: [String], own: [String] = []) throws -> DoctorReport {
    let report = try DoctorReport(Self.small + options, own: own, in: directory)
    for finding in report.findings where finding.status != "ok" { #expect(!finding.mends.isEmpty, "\(finding)") }
    return report
  }

  private func sound(_ report: DoctorReport) -> [DoctorReport.Finding] {
    report.findings.filter { $0.key.hasPrefix("microphone") }
  }

  private func problem(_ key: String, in report: DoctorReport) throws -> DoctorReport.Finding {
    let finding = try #require(report[key], "\(report.findings)")
    #expect(finding.status == "problem" && report.exitCode == 1)
    return finding
  }

  /// Writes a configuration of alsa-lib, which the doctor reads as that of its user.
  private func configureALSA(_ text: String) throws {
    let folder = directory.path("config/alsa")
    try FileManager.default.createDirectory(atPath: folder, withIntermediateDirectories: true)
    try text.write(toFile: "\(folder)/asoundrc", atomically: true, encoding: .utf8)
  }

  @Test func `who asks for no sound hears nothing of it, and a tone needs no microphone`() throws {
    #expect(sound(try doctor(["--audio", "none"])).isEmpty)
    // The synthetic camera has no microphone of its own.
    #expect(sound(try doctor([])).isEmpty)
    let tone = try doctor(["--audio", "test"])
    #expect(sound(tone).map(\.key) == ["microphone"] && sound(tone).first?.text.contains("tone") == true)
  }

  private static let hasNoDevices = ["/dev/snd", "/dev/video0"].allSatisfy {
    !FileManager.default.fileExists(atPath: $0)
  }

  @Test(.enabled(if: hasNoDevices, "needs a machine without sound cards and cameras"))
  func `without a sound card, the camera that is waited for needs no microphone`() throws {
    let report = try DoctorReport(["--source", "auto", "--wait", "--size", "320x240", "--fps", "15"], in: directory)
    #expect(sound(report).map(\.status) == ["ok"], "\(report.findings)")
  }

  @Test func `a microphone that is not there is a problem, and the list is the mend`() throws {
    let missing = try problem("microphone-missing", in: doctor(["--audio", "hw:CARD=Nowhere"]))
    #expect(missing.text.contains("hw:CARD=Nowhere") && missing.commands == ["nightjar devices"])
    #expect(try runMend(missing.commands[0], in: directory).status == 0)
    let mended = try doctor(["--audio", "none"])
    #expect(!mended.has("microphone-missing"))
  }

  @Test func `silence, an odd rate and a driver that refuses are told`() throws {
    try configureALSA(
      """
      pcm.quiet { type null }
      pcm.slow { type plug slave { pcm "null" rate 4000 } }
      pcm.broken { type null nonsense 1 }
      """)
    let silent = try #require(try doctor(["--audio", "quiet"])["microphone-silent"])
    #expect(silent.status == "warning" && silent.figures["peak_dbfs"] == -100, "\(silent)")
    let listening = try runMend(
      try #require(silent.commands.first).replacingOccurrences(of: "-d 5", with: "-d 1"), in: directory)
    #expect(listening.status == 0, "\(listening.error)")
    let format = try problem("microphone-format", in: doctor(["--audio", "slow"]))
    #expect(format.text.contains("slow") && format.text.contains("rate"), "\(format)")
    let broken = try problem("microphone-unusable", in: doctor(["--audio", "broken"]))
    #expect(broken.text.contains("broken"), "\(broken)")
  }

  @Test func `a running stream is asked for its sound`() throws {
    let socket = directory.path("control")
    let program = try Subprocess(
      [nightjarPath, "stream", "--config", "none", "--control", socket, "--rtsp", "127.0.0.1:18574"] + Self.small
        + ["--audio", "test"], in: directory)
    defer { program.send(SIGKILL) }
    #expect(eventually { !program.log.values(of: "control").isEmpty || !program.isRunning }, "\(program.errorSoFar)")
    let own = ["--socket", socket]
    let tone = try #require(try doctor(["--audio", "test"], own: own)["microphone"])
    #expect(tone.text == "test tone, in the running stream", "\(tone)")
    #expect(try runMend("nightjar ctl audio mute --socket \(socket)", in: directory).status == 0)
    let muted = try #require(try doctor(["--audio", "test"], own: own)["microphone"])
    let unmute = "nightjar ctl audio unmute --socket \(socket)"
    #expect(muted.text == "test tone, in the running stream: muted (\(unmute))")
    #expect(sound(try doctor(["--audio", "none"], own: own)).isEmpty)
  }

  @Test func `a stream without the sound that the configuration asks for is told to reload`() throws {
    let socket = directory.path("control")
    let program = try Subprocess(
      [nightjarPath, "stream", "--config", "none", "--control", socket, "--rtsp", "127.0.0.1:18584"] + Self.small
        + ["--audio", "none"], in: directory)
    defer { program.send(SIGKILL) }
    #expect(eventually { !program.log.values(of: "control").isEmpty || !program.isRunning }, "\(program.errorSoFar)")
    let lost = try problem("microphone-lost", in: doctor(["--audio", "test"], own: ["--socket", socket]))
    #expect(lost.commands == ["nightjar ctl reload --socket \(socket)"], "\(lost)")
  }

  @Test func `a command for the sound of one of several cameras names the camera`() throws {
    let socket = directory.path("control")
    let file = directory.path("nightjar.toml")
    let cameras = ["one", "two"].map { "[[camera]]\nname = \"\($0)\"\nsource = \"test\"\naudio = \"test\"\n" }
    let text = "rtsp = \"127.0.0.1:18594\"\nsize = \"320x240\"\nfps = 5\n" + cameras.joined()
    try text.write(toFile: file, atomically: true, encoding: .utf8)
    let program = try Subprocess([nightjarPath, "stream", "--config", file, "--control", socket], in: directory)
    defer { program.send(SIGKILL) }
    let mute = "nightjar ctl audio mute --camera two --socket \(socket)"
    #expect(eventually { (try? runMend(mute, in: directory).status) == 0 }, "\(program.errorSoFar)")
    func two() throws -> DoctorReport.Finding? {
      let report = try DoctorReport([], own: ["--config", file, "--socket", socket], in: directory)
      return report.findings.first { $0.key == "microphone" && $0.camera == "two" }
    }
    let muted = try #require(try two())
    let unmute = "nightjar ctl audio unmute --camera two --socket \(socket)"
    #expect(muted.text.hasSuffix("muted (\(unmute))"), "\(muted)")
    #expect(try runMend(unmute, in: directory).status == 0)
    #expect(try two()?.text.contains("muted") == false)
  }

  // MARK: - The mixer

  private func findings(peak: Double, _ controls: [RecordingControl]) -> [Finding] {
    MicrophoneFindings.findings(
      "Mic", "48000 Hz mono", level: SoundLevel(rms: peak - 10, peak: peak), card: "C920",
      listening: .command("true"), controls: controls)
  }

  @Test func `a switch that is off and a volume of zero are told with the command that mends them`() {
    let controls = [RecordingControl(name: "Mic", isOn: false, isVolumeZero: true)]
    let found = findings(peak: -100, controls)
    #expect(found.map(\.kind) == [.microphoneMuted, .microphoneMuted])
    #expect(found.first?.mends.first == .command("amixer -c C920 sset Mic cap"))
    #expect(found.last?.mends.first == .command("amixer -c C920 sset Mic capture 80%"))
    // What is heard is not muted.
    #expect(findings(peak: -20, controls).map(\.kind) == [.microphone])
    #expect(findings(peak: -100, []).map(\.kind) == [.microphoneSilent])
    #expect(findings(peak: -75, []).map(\.kind) == [.microphone])
    let second = findings(peak: -100, [RecordingControl(name: "Mic Jack", index: 1, isOn: false, isVolumeZero: nil)])
    #expect(second.first?.mends.first == .command("amixer -c C920 sset 'Mic Jack,1' cap"))
  }

  @Test(arguments: ["x'; id; '", "$(id)", "a,b", "\"q\"", "-D", "", "a\\b", "`id`", " Mic"])
  func `a strange name of a control is in no command`(name: String) {
    let found = findings(peak: -100, [RecordingControl(name: name, isOn: false, isVolumeZero: nil)])
    #expect(
      found.first?.mends.first == .command("alsamixer --view=capture --card=C920"), "\(found.first?.mends ?? [])")
  }

  @Test func `who has a busy microphone is told, and a program of another user needs root to name it`() {
    let unseen = MicrophoneFindings.finding(.busy("hw:CARD=C920"), device: "hw:CARD=C920", node: nil)
    #expect(unseen.kind.rawValue == "microphone-busy" && unseen.mends.first == .command("sudo fuser -v /dev/snd/*"))
    let group = MicrophoneFindings.finding(.noPermission("hw:CARD=C920"), device: "hw:CARD=C920", node: nil)
    #expect(group.kind == .microphoneMode && group.mends == [.command("ls -l /dev/snd")])
  }

  @Test(arguments: ["pipewire", "pipewire-pulse", "pulseaudio", "wireplumber"])
  func `a sound server is not killed, because systemd starts it again`(name: String) {
    func busy(_ holders: [DeviceHolder]) -> Finding {
      MicrophoneFindings.busy(
        "hw:CARD=C920", path: "/dev/snd/pcmC1D0c", holders: holders, stream: nil, status: "nightjar ctl status")
    }
    func commands(_ finding: Finding) -> [Mend] {
      finding.mends.filter { if case .command = $0 { true } else { false } }
    }
    let server = DeviceHolder(processID: 4_000_001, name: name)
    let recorder = DeviceHolder(processID: 4_000_002, name: "arecord")
    let served = busy([server])
    #expect(served.text == "hw:CARD=C920 is in use by \(name) (process 4000001)")
    #expect(commands(served).isEmpty, "\(served)")
    let advice = "close the program that records through \(name), or record through it too: audio = \"default\""
    #expect(served.mends.first == .advice(advice), "\(served)")
    #expect(commands(busy([server, recorder])) == [.command("kill 4000002")])
    #expect(busy([recorder]).mends.first == .command("kill 4000002"))
  }
}
