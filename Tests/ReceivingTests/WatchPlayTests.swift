import Foundation
import TestSupport
import Testing

/// The window, the sound device and the alarm of `nightjar-watch`.
@Suite struct WatchPlayTests {
  private static let hasScreen = FileManager.default.isExecutableFile(atPath: "/usr/bin/Xvfb")

  @Test func `sound is played as it was sent`() throws {
    let directory = try TemporaryDirectory()
    let (program, url) = try WatchTests.camera(["--audio", "test"], in: directory)
    defer { program.send(SIGTERM) }
    // A window in memory, and a sound device that writes a file. Of what comes after a busy machine has stood still, most is left out.
    let raw = directory.path("sound.raw")
    let result = try WatchTests.watch(
      [url, "--play", "--for", "8s"], in: directory,
      environment: ["SDL_VIDEODRIVER": "dummy", "SDL_AUDIODRIVER": "disk", "SDL_DISKAUDIOFILE": raw])
    #expect(result.status == 0, "\(result.error)")
    func number(_ before: String) -> Double {
      let text = result.error.components(separatedBy: before).dropFirst().first ?? ""
      return Double(text.prefix { $0.isNumber || $0 == "." }) ?? 0
    }
    #expect(number("window     ") > 20, "\(result.error)")
    #expect(number("played     ") > 2, "\(result.error)")
    let bytes = try Data(contentsOf: URL(fileURLWithPath: raw))
    let samples = bytes.withUnsafeBytes { bytes in
      (0..<bytes.count / 4).map { bytes.loadUnaligned(fromByteOffset: 4 * $0, as: Int16.self) }
    }
    // A beep of a tenth of a second each second, 1000 Hz loud, of a quarter of the full scale.
    let loud = samples.map { abs(Int($0)) }.filter { $0 > 1000 }.sorted()
    #expect(loud.count > 2400 && loud.count < samples.count / 4, "\(loud.count) of \(samples.count)")
    // Half of such a sine's samples beyond 1000 are beyond three quarters of its amplitude. A decoder that begins within a beep
    // is up to 1.7 times too loud for some 20 ms, as it does not know the levels before (RFC 7845 section 4.6).
    let median = try #require(loud.dropFirst(loud.count / 2).first)
    #expect((4500...8200).contains(median), "\(median)")
    // After sound that is missing it does not know them either; where none is, no sample is beyond.
    #expect(loud[loud.count * 9 / 10] < 16_000, "\(loud.last ?? 0)")
    let isWhole = result.error.contains(/sound +[0-9]+ packets, 0 lost/)
    #expect(try !isWhole || #require(loud.last) < 16_000, "\(result.error)")
  }

  @Test func `without a display it says so, and ends`() throws {
    let directory = try TemporaryDirectory()
    let result = try WatchTests.watch(
      ["rtsp://127.0.0.1:1/camera", "--play"], in: directory, environment: ["SDL_VIDEODRIVER": "none-such"])
    // SDL's own words are between.
    let (start, end) = ("nightjar-watch: no window opens (", "); leave --play out where there is no display")
    let reasons = result.log.lines.filter { $0.hasPrefix(start) && $0.hasSuffix(end) }
    #expect(result.status == 69 && reasons.count == 1, "\(result.error)")
  }

  @Test(.enabled(if: hasScreen, "needs Xvfb"))
  func `the window shows the picture in its colours`() throws {
    let directory = try TemporaryDirectory()
    let (program, clip, url) = try WatchTests.bars("640x480", in: directory)
    defer { program.send(SIGTERM) }
    // The server chooses a free display, and tells its number.
    let screen = try Subprocess(
      ["Xvfb", "-displayfd", "1", "-screen", "0", "640x480x24", "-nolisten", "tcp"], in: directory)
    defer { screen.send(SIGTERM) }
    #expect(eventually { screen.outputSoFar.contains("\n") || !screen.isRunning }, "\(screen.errorSoFar)")
    let display = ":" + screen.outputSoFar.trimmingCharacters(in: .whitespacesAndNewlines)
    let watching = try Subprocess(
      [WatchTests.path, url, "--play", "--no-sound"], in: directory,
      environment: ["DISPLAY": display, "SDL_VIDEODRIVER": "x11", "SDL_RENDER_DRIVER": "software"])
    defer { watching.send(SIGKILL) }
    #expect(eventually { watching.errorSoFar.contains("playing") })
    // Without a window manager the window is in the middle, and as large as the screen.
    func likeness() throws -> Double {
      let compared = try Subprocess.run(
        [
          "ffmpeg", "-v", "info", "-nostdin", "-f", "x11grab", "-draw_mouse", "0", "-video_size", "640x480", "-i",
          display, "-i", clip, "-frames:v", "1", "-lavfi",
          "[0:v]format=gbrp[a];[1:v]format=gbrp[b];[a][b]psnr", "-f", "null", "-",
        ], in: directory)
      let value = compared.error.components(separatedBy: "average:").last.flatMap { text in
        Double(text.prefix { $0.isNumber || $0 == "." })
      }
      return value ?? 0
    }
    #expect(try eventually(within: 60) { try likeness() > 25 }, "\(watching.errorSoFar)")
    watching.send(SIGINT)
    let result = try watching.wait()
    let drawn = result.log.values(of: "window").compactMap { Int($0.prefix(while: \.isNumber)) }
    #expect(result.status == 0 && drawn.first ?? 0 > 0, "\(result.error)")
  }

  @Test func `a dead line rings the bell until the picture is back`() throws {
    let directory = try TemporaryDirectory()
    let port = try UDPPort.free()
    let sdp = directory.path("stream.sdp")
    func sender() throws -> Subprocess {
      try Subprocess(
        [
          nightjarPath, "stream", "--source", "test", "--size", "320x192", "--fps", "25", "--control", "none", "--to",
          "rtp://127.0.0.1:\(port)?rtcp=mux&audio=none", "--sdp", sdp,
        ], in: directory)
    }
    let first = try sender()
    defer { first.send(SIGKILL) }
    #expect(eventually { (try? String(contentsOfFile: sdp, encoding: .utf8))?.contains("m=video") == true })
    // On a terminal of its own.
    let watching = try Subprocess(
      ["script", "-qfec", "'\(WatchTests.path)' '\(sdp)' --max-freeze 1s", "/dev/null"], in: directory)
    defer { watching.send(SIGKILL) }
    func shown() -> String { watching.outputSoFar }
    func count(_ text: String) -> Int { shown().components(separatedBy: text).count - 1 }
    let (bell, back) = ("\u{7}", "the picture is back after ")
    // On a busy machine an alarm may sound before the first picture, and end with it.
    #expect(eventually(within: 60) { shown().contains(/[1-9][0-9]* fps/) }, "\(shown().suffix(400))")
    let (rung, alarms) = (count(bell), count("ALARM "))
    first.send(SIGKILL)
    _ = try first.wait()
    let rings = eventually(within: 90) { count("ALARM ") >= alarms + 2 && count(bell) >= rung + 5 }
    #expect(rings, "\(shown().suffix(400))")
    let returns = count(back)
    let second = try sender()
    defer { second.send(SIGTERM) }
    #expect(eventually(within: 90) { count(back) > returns }, "\(shown().suffix(400))")
    // Silence then, up to the next alarm if there is one.
    func sinceReturn() -> String {
      let rest = shown().components(separatedBy: back).last ?? ""
      return rest.components(separatedBy: "ALARM ")[0]
    }
    var silence = ""
    let goesOn = eventually(within: 90) {
      silence = sinceReturn()
      return silence.components(separatedBy: " fps").count > 4
    }
    #expect(goesOn && !silence.contains(bell), "\(shown().suffix(400))")
  }
}
