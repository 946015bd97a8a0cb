import Foundation
import TestSupport
import Testing

/// Sound from the kernel's own cards: what is played into one end of snd-aloop comes out at the other, and snd-dummy has
/// a mixer.
@Suite(.serialized, .enabled(if: Vivid.isHere)) struct MicrophoneTests {
  private let directory: TemporaryDirectory

  init() throws {
    directory = try TemporaryDirectory()
    #expect(chmod(directory.url.path, 0o777) == 0)
  }

  private func doctor(_ device: String, own: [String] = [], before: [String] = []) throws -> DoctorReport {
    try DoctorReport(
      ["--source", "test", "--size", "320x240", "--fps", "5", "--encoder", "x264", "--audio", device], own: own,
      before: before, in: directory)
  }

  private func mend(_ command: String?) throws {
    let result = try runMend(try #require(command), in: directory)
    #expect(result.status == 0, "\(command ?? ""): \(result.error)")
  }

  @Test func `devices lists the cards with what they offer, and who uses one`() throws {
    func microphones() throws -> [String: [String: Any]] {
      let result = try Subprocess.run([nightjarPath, "devices", "--json"], in: directory)
      let document = try JSONSerialization.jsonObject(with: result.output) as? [String: Any]
      let list = try #require(document?["microphones"] as? [[String: Any]])
      return Dictionary(uniqueKeysWithValues: list.map { ($0["device"] as? String ?? "", $0) })
    }
    let found = try microphones()
    let loopback = try #require(found[LoopbackCard.microphone], "\(found)")
    #expect(loopback["name"] as? String == "Loopback" && loopback["usable"] as? Bool == true)
    #expect((loopback["rates"] as? [Int])?.contains(48_000) == true)
    #expect((loopback["formats"] as? [String])?.contains("S16_LE") == true)
    #expect(loopback["channel_range"] as? [Int] == [1, 32])
    let path = try #require(loopback["path"] as? String, "\(loopback)")
    let text = try Subprocess.run([nightjarPath, "devices"], in: directory)
    #expect(text.listing.count(of: "\(LoopbackCard.microphone)  Loopback (\(path))") == 1, "\(text.outputText)")
    // All of the device's eight subdevices.
    let holders = try (0..<8).map { _ in
      try Subprocess(
        ["arecord", "-q", "-D", LoopbackCard.microphone, "-f", "S16_LE", "-r", "48000", "-c", "2", "/dev/null"],
        in: directory)
    }
    defer { for holder in holders { holder.send(SIGKILL) } }
    #expect(eventually { (try? microphones()[LoopbackCard.microphone]?["usable"] as? Bool) == false })
    let busy = try microphones()[LoopbackCard.microphone]?["obstacle"] as? String
    #expect(busy?.hasPrefix("in use by arecord (process ") == true, "\(busy ?? "")")
  }

  @Test func `a microphone in use is told with who has it, and free once that is ended`() throws {
    let device = LoopbackCard.microphone + ",SUBDEV=0"
    let holder = try Subprocess(
      ["arecord", "-q", "-D", device, "-f", "S16_LE", "-r", "48000", "-c", "2", "/dev/null"], in: directory)
    defer { holder.send(SIGKILL) }
    #expect(eventually { (try? doctor(device).has("microphone-busy")) == true })
    let busy = try #require(try doctor(device)["microphone-busy"])
    #expect(busy.text.hasSuffix(" is in use by arecord (process \(holder.identifier))"), "\(busy)")
    #expect(busy.commands == ["kill \(holder.identifier)"])
    try mend(busy.commands.first)
    _ = try holder.wait(limit: 60)
    let mended = try doctor(device)
    #expect(!mended.has("microphone-busy"), "\(mended.findings)")
  }

  @Test func `a mixer that mutes the card is told, until its commands have been run`() throws {
    for change in ["nocap", "0%"] {
      let set = try Subprocess.run(["amixer", "-c", "Dummy", "sset", "Mic", change], in: directory)
      #expect(set.status == 0, "\(set.error)")
    }
    let device = "hw:CARD=Dummy"
    for command in ["amixer -c Dummy sset Mic cap", "amixer -c Dummy sset Mic capture 80%"] {
      let muted = try #require(try doctor(device)["microphone-muted"])
      #expect(muted.status == "warning" && muted.commands == [command], "\(muted)")
      try mend(muted.commands.first)
    }
    let mended = try doctor(device)
    #expect(!mended.has("microphone-muted"), "\(mended.findings)")
  }

  @Test func `silence is told until something is heard`() throws {
    let silent = try #require(try doctor(LoopbackCard.microphone)["microphone-silent"])
    #expect(silent.figures["peak_dbfs"] == -100, "\(silent)")
    let player = try LoopbackCard.play(in: directory)
    defer { player.send(SIGKILL) }
    #expect(eventually { (try? doctor(LoopbackCard.microphone)["microphone"]) != nil })
    let heard = try #require(try doctor(LoopbackCard.microphone)["microphone"])
    #expect(abs((heard.figures["peak_dbfs"] ?? 0) + 14) < 1, "\(heard)")
  }

  @Test func `who may not open the card is told why`() throws {
    let nodes = ["/dev/snd/controlC", "/dev/snd/pcmC"]
    func shell(_ text: String) throws {
      #expect(try Subprocess.run(["sh", "-c", text], in: directory).status == 0)
    }
    defer { try? shell("chgrp root /dev/snd/*; chmod 600 /dev/snd/*") }
    let stranger = ["setpriv", "--reuid=games", "--regid=65534", "--clear-groups"]
    try shell("chgrp root /dev/snd/*; chmod 600 /dev/snd/*")
    let modes = try doctor(LoopbackCard.microphone, before: stranger).findings.filter { $0.key == "microphone-mode" }
    #expect(modes.count == 2 && zip(modes, nodes).allSatisfy { $0.text.hasPrefix($1) }, "\(modes)")
    for mode in modes { try mend(mode.commands.first) }
    let group = try doctor(LoopbackCard.microphone, before: stranger).findings.filter { $0.key.hasPrefix("microphone") }
    #expect(group.map(\.key) == ["microphone-group"], "\(group)")
    #expect(group.first?.commands == ["sudo usermod -aG audio games"], "\(group)")
    let member = ["setpriv", "--reuid=games", "--regid=65534", "--groups=audio"]
    let mended = try doctor(LoopbackCard.microphone, before: member)
    #expect(mended.has("microphone") || mended.has("microphone-silent"), "\(mended.findings)")
  }

  @Test func `what is played into the card is heard by RTSP, and the running stream tells its level`() throws {
    let port = try TCPPort.free()
    let socket = directory.path("control")
    let heartbeat = try Heartbeat()
    let program = try Subprocess(
      [
        nightjarPath, "stream", "--source", "test", "--size", "320x240", "--fps", "5", "--control", socket, "--rtsp",
        "127.0.0.1:\(port)", "--audio", LoopbackCard.microphone, "--no-audio-high-pass",
      ], in: directory)
    defer { program.send(SIGKILL) }
    func hasMicrophone() -> Bool { program.log.lines.contains { $0.hasPrefix("microphone: ") } }
    #expect(eventually { hasMicrophone() || !program.isRunning }, "\(program.errorSoFar)")
    let own = ["--socket", socket]
    let silent = try doctor(LoopbackCard.microphone, own: own)
    #expect((silent["microphone-silent"]?.figures["digital_silence_seconds"] ?? 0) > 1, "\(silent.findings)")
    let player = try LoopbackCard.play(in: directory)
    defer { player.send(SIGKILL) }
    #expect(eventually { (try? doctor(LoopbackCard.microphone, own: own)["microphone"]) != nil })
    let heard = try #require(try doctor(LoopbackCard.microphone, own: own)["microphone"])
    // Of the running stream alone: no trial knows it.
    #expect(heard.figures["digital_silence_seconds"] != nil, "\(heard)")
    /// The mean volume of three seconds, in dB.
    func listen() throws -> Double {
      let listener = try Subprocess.run(
        [
          "ffmpeg", "-nostdin", "-v", "info", "-rtsp_transport", "tcp", "-allowed_media_types", "audio", "-i",
          "rtsp://127.0.0.1:\(port)/camera", "-t", "3", "-af", "volumedetect", "-f", "null", "-",
        ], in: directory)
      #expect(listener.status == 0, "\(listener.error.suffix(2000))")
      let words = listener.error.split(separator: " ")
      let index = try #require(words.firstIndex { $0.hasSuffix("mean_volume:") }, "\(listener.error.suffix(2000))")
      return Double(words[index + 1]) ?? 0
    }
    // A sine's mean is 3 dB below its peak.
    var volume = try listen()
    // Of a machine that is held up, the card has lost what was played meanwhile.
    for _ in 0..<4 where abs(volume + 17) >= 2 && heartbeat.longestPause > 0.5 { volume = try listen() }
    #expect(abs(volume + 17) < 2, "\(volume) dB, held up for \(heartbeat.longestPause) s")
    program.send(SIGTERM)
    #expect(try program.wait(limit: 60).status == 0)
  }

  @Test func `a program that was stopped has lost samples, which is counted, and its line of sound goes on`() throws {
    let sound = try SoundLine()
    let stream = try LoggedStream(
      [
        "--source", "test", "--size", "320x240", "--fps", "5", "--audio", LoopbackCard.microphone, "--to",
        "rtp://127.0.0.1:\(try UDPPort.free())?audio=\(sound.port)",
      ], in: directory)
    #expect(stream.says("microphone: "), "\(stream.program.errorSoFar)")
    let player = try LoopbackCard.play(in: directory)
    defer { player.send(SIGKILL) }
    func figures() throws -> [String: Any] {
      let result = try Subprocess.run(
        [nightjarPath, "ctl", "--socket", stream.socket, "audio", "show", "--json"], in: directory)
      return try JSONSerialization.jsonObject(with: result.output) as? [String: Any] ?? [:]
    }
    func hears() -> Bool { (try? figures()["peak_dbfs"] as? Double).map { abs($0 - LoopbackCard.peak) < 1 } ?? false }
    func count(_ name: String) throws -> Int { try #require(try figures()[name] as? Int) }
    #expect(eventually(within: 100) { hears() })
    let before = try figures()
    #expect(before["timestamps"] as? String == "driver" && before["period_ms"] as? Double == 10, "\(before)")
    /// Stops the program, and returns the times that it lost the card by that. It may lose it where the machine is held
    /// up besides: then it is stopped again.
    func lossesByStop(microseconds: UInt32) throws -> Int {
      var lost = 0
      for _ in 0..<5 {
        let (losses, overruns) = (try count("losses"), try count("overruns"))
        stream.heartbeat.forget()
        stream.program.send(SIGSTOP)
        usleep(microseconds)
        stream.program.send(SIGCONT)
        // What it hears may still be from before; the one or the other is counted first.
        let isCounted = try eventually { try count("overruns") > overruns || count("losses") > losses }
        #expect(isCounted, "\(stream.program.errorSoFar)")
        #expect(eventually(within: 100) { hears() })
        lost = try count("losses") - losses
        if lost == 0 || stream.heartbeat.longestPause < 0.5 { break }
      }
      return lost
    }
    // More than the card's memory of 200 ms.
    #expect(try lossesByStop(microseconds: 600_000) == 0, "\(stream.program.errorSoFar)")
    let after = try figures()
    #expect(after["overruns"] as? Int ?? 0 > before["overruns"] as? Int ?? 0, "\(after)")
    #expect(after["present"] as? Bool == true, "\(after) \(stream.program.errorSoFar)")
    #expect((after["silence_seconds"] as? Double ?? 0) > (before["silence_seconds"] as? Double ?? 0), "\(after)")
    // Longer than the driver's time to answer: the driver is not to blame.
    #expect(try lossesByStop(microseconds: 5_000_000) == 0, "\(stream.program.errorSoFar)")
    _ = try stream.finish()
    sound.end()
    // The silence of the pauses would come late: the time of the packets makes a step instead, as that of the pictures does.
    #expect(sound.packets.units.count > 50 && sound.faults == [])
    let longest = sound.packets.steps(since: 0).longest
    #expect(longest > 4, "\(longest)")
  }

  @Test func `without a microphone of its own, a camera gets that of ALSA's default card`() throws {
    func name(_ environment: [String]) throws -> String {
      let stream = try LoggedStream(
        ["--source", try Vivid.node(0), "--size", "640x360", "--format", "nv12"], in: directory,
        environment: environment)
      defer { _ = try? stream.finish() }
      #expect(stream.says("microphone: "), "\(stream.program.errorSoFar)")
      let result = try Subprocess.run(
        [nightjarPath, "ctl", "--socket", stream.socket, "audio", "show", "--json"], in: directory)
      let sound = try JSONSerialization.jsonObject(with: result.output) as? [String: Any]
      return sound?["name"] as? String ?? ""
    }
    #expect(try name(["ALSA_CARD=Dummy"]) == "Dummy (hw:CARD=Dummy,DEV=0)")
    #expect(try name(["ALSA_CARD=Loopback"]).hasPrefix("Loopback (hw:CARD=Loopback,DEV="))
    // A default that does not exist is nobody's.
    #expect(try name(["ALSA_CARD=Nowhere"]).hasSuffix(",DEV=0)"))
  }

  @Test func `a card that is unplugged is silence, and sound again once it is back`() throws {
    let stream = try LoggedStream(
      ["--source", "test", "--size", "320x240", "--fps", "5", "--audio", LoopbackCard.microphone], in: directory)
    #expect(stream.says("microphone: "), "\(stream.program.errorSoFar)")
    let own = ["--socket", stream.socket]
    try LoopbackCard.plug("unbind")
    #expect(eventually { (try? doctor(LoopbackCard.microphone, own: own).has("microphone-lost")) == true })
    let lost = try #require(try doctor(LoopbackCard.microphone, own: own)["microphone-lost"])
    #expect(lost.status == "problem" && lost.text.hasSuffix("; viewers hear silence"), "\(lost)")
    try LoopbackCard.plug("bind")
    #expect(eventually { (try? doctor(LoopbackCard.microphone, own: own).has("microphone-lost")) == false })
    _ = try stream.finish()
  }
}
