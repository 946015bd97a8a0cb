#if X264
  import Foundation
  import TestSupport
  import Testing

  extension Subprocess {
    /// The processor time that threads of these names have used, in seconds.
    fileprivate func processorSeconds(ofThreads names: Set<String>) -> Double {
      let folder = "/proc/\(identifier)/task"
      let ticks = ((try? FileManager.default.contentsOfDirectory(atPath: folder)) ?? []).map { thread in
        // The name is in brackets; user and system time are the 12th and 13th field after it.
        let text = (try? String(contentsOfFile: "\(folder)/\(thread)/stat", encoding: .utf8)) ?? ""
        guard let open = text.firstIndex(of: "("), let close = text.lastIndex(of: ")") else { return 0 }
        let fields = text[close...].split(separator: " ")
        guard names.contains(String(text[text.index(after: open)..<close])), fields.count > 13 else { return 0 }
        return (Int(fields[12]) ?? 0) + (Int(fields[13]) ?? 0)
      }
      return Double(ticks.reduce(0, +)) / Double(sysconf(Int32(_SC_CLK_TCK)))
    }
  }

  /// A stream whose sound comes from a pipe, by alsa-lib's plugin `file`. The plugin waits in reading for as long as nobody
  /// writes, as a driver that hangs.
  private final class PipedSound {
    let directory: TemporaryDirectory
    /// Plays into the pipe.
    let writer: Subprocess
    let program: Subprocess
    /// A reader that never reads: while the program opens the pipe anew, the writer must not find it without any.
    private let held: Int32

    /// Begins to play `sound`, in ffmpeg's words, and to stream it.
    init(_ sound: String, _ arguments: [String]) throws {
      directory = try TemporaryDirectory()
      let pipe = directory.path("pipe")
      try #require(mkfifo(pipe, 0o600) == 0)
      held = open(pipe, O_RDONLY | O_NONBLOCK)
      try #require(held >= 0)
      try FileDevice.define("pipe", reading: pipe, in: directory)
      writer = try Subprocess(
        [
          "ffmpeg", "-nostdin", "-v", "error", "-re", "-f", "lavfi", "-i", sound, "-ac", "1", "-ar", "48000", "-f",
          "s16le", "-flush_packets", "1", "-y", pipe,
        ], in: directory)
      program = try Subprocess(
        [
          nightjarPath, "stream", "--source", "test", "--size", "320x240", "--audio", "pipe", "--control",
          directory.path("control"),
        ] + arguments, in: directory,
        environment: ["HOME": directory.url.path, "STATE_DIRECTORY": directory.path("state")])
      try #require(eventually(within: 60) { hearsSound }, "\(program.errorSoFar) \(writer.errorSoFar)")
    }

    deinit {
      close(held)
      for process in [program, writer] {
        process.send(SIGCONT)
        process.send(SIGKILL)
        _ = try? process.wait(limit: 60)
      }
    }

    /// The sound, as `nightjar ctl` shows it.
    var figures: [String: Any] {
      let answer = try? Subprocess.run(
        [nightjarPath, "ctl", "--socket", directory.path("control"), "audio", "show", "--json"], in: directory)
      return answer.flatMap { try? JSONSerialization.jsonObject(with: $0.output) as? [String: Any] } ?? [:]
    }

    var peak: Double { figures["peak_dbfs"] as? Double ?? -100 }

    var hearsSound: Bool { peak > -40 }
  }

  /// Sound from devices of alsa-lib's that are no cards.
  @Suite(.serialized) struct SoundDriverTests {
    @Test func `a driver that hangs in reading is told, and silence is on the line until it answers`() throws {
      let recorder = try DatagramRecorder()
      let port = try TCPPort.free()
      let piped = try PipedSound(
        "sine=frequency=1000:sample_rate=48000",
        ["--to", "rtp://127.0.0.1:\(try UDPPort.free())?audio=\(recorder.port)", "--https", "127.0.0.1:\(port)"])
      func health() throws -> String? {
        let cameras = try Health(piped.directory.path("control"), in: piped.directory)?.document["cameras"]
        return (cameras as? [[String: Any]])?.first?["sound"] as? String
      }
      #expect(try eventually { try health() == "present" })
      let browser = try Browser(in: piped.directory)
      try browser.open("https://127.0.0.1:\(port)/")
      try #require(
        eventually(within: 60) { browser.text("nightjar.state") == "live" },
        "\(browser.page) \(piped.program.errorSoFar)")
      // The page knows that there is a microphone once it has been told so.
      let asked = "(await fetch('healthz').then((answer) => answer.json())).cameras[0].sound"
      #expect(eventually { browser.text("(async () => \(asked))()") == "present" })
      let words = "The microphone delivers no sound."
      #expect(!browser.page.contains(words))
      // A writer that was slow to begin has been lost before.
      let losses = try #require(piped.figures["losses"] as? Int)
      piped.writer.send(SIGSTOP)
      let reason =
        "viewers hear silence until the microphone is back: the driver of the sound device pipe has not answered"
      #expect(eventually(within: 60) { piped.program.errorSoFar.contains(reason) }, "\(piped.program.errorSoFar)")
      #expect(try eventually { try health() == "stuck" })
      #expect(eventually(within: 50) { browser.page.contains(words) }, "\(browser.page)")
      let count = recorder.count
      // Half a second of packets.
      #expect(eventually { recorder.count > count + 25 })
      piped.writer.send(SIGCONT)
      #expect(eventually(within: 60) { piped.hearsSound }, "\(piped.program.errorSoFar)")
      #expect(try eventually { try health() == "present" })
      #expect(eventually(within: 60) { !browser.page.contains(words) }, "\(browser.page)")
      #expect(piped.figures["losses"] as? Int == losses + 1)
      piped.program.send(SIGTERM)
      #expect(try piped.program.wait(limit: 60).status == 0)
      let packets = recorder.finish().filter { $0.count > 12 }
      let numbers = packets.map { UInt16($0[2]) << 8 | UInt16($0[3]) }
      #expect(zip(numbers, numbers.dropFirst()).allSatisfy { $1 == $0 &+ 1 })
      #expect(Set(packets.map { Array($0[8..<12]) }).count == 1)
    }

    /// Two of alsa-lib's plugins that answer each reading at once: `null`, and `file` with a file in the place of its sound.
    @Test(arguments: ["null", "song"])
    func `a device that does not wait for its samples is read by the clock, and a file is heard in its pitch`(
      device: String
    ) throws {
      let directory = try TemporaryDirectory()
      let song = directory.path("song.raw")
      let made = try Subprocess.run(
        [
          "ffmpeg", "-nostdin", "-v", "error", "-f", "lavfi", "-i", "aevalsrc=0.2*sin(2*PI*1000*t):s=48000:d=300", "-f",
          "s16le", song,
        ], in: directory)
      #expect(made.status == 0, "\(made.error)")
      try FileDevice.define("song", reading: song, in: directory)
      let port = try TCPPort.free()
      let program = try Subprocess(
        [
          nightjarPath, "stream", "--source", "test", "--size", "320x240", "--fps", "5", "--audio", device, "--control",
          directory.path("control"), "--rtsp", "127.0.0.1:\(port)",
        ], in: directory, environment: ["HOME": directory.url.path])
      defer {
        program.send(SIGKILL)
        _ = try? program.wait(limit: 60)
      }
      let words =
        "the microphone \(device) does not wait for its samples, so nightjar takes 48000 of them a second by its own clock"
      #expect(eventually(within: 60) { program.errorSoFar.contains(words) }, "\(program.errorSoFar)")
      let listener = try RTSPListener(port: port, in: directory)
      func figures() throws -> [String: Any] {
        let answer = try Subprocess.run(
          [nightjarPath, "ctl", "--socket", directory.path("control"), "audio", "show", "--json"], in: directory)
        return try JSONSerialization.jsonObject(with: answer.output) as? [String: Any] ?? [:]
      }
      func seconds() -> Double { program.processorSeconds(ofThreads: ["nj-card", "nj-audio"]) }
      let (begin, cost) = (ProcessInfo.processInfo.systemUptime, seconds())
      let first = try figures()["unstamped"] as? Int ?? 0
      #expect(
        eventually(within: 60) { device == "null" ? listener.hearsNothing : listener.hears(1000, level: -17) },
        "\(listener.last as Any) \(listener.log)")
      #expect(eventually { ProcessInfo.processInfo.systemUptime - begin > 2 })
      let last = try figures()
      let (spent, passed) = (seconds() - cost, ProcessInfo.processInfo.systemUptime - begin)
      // Ten times the goal. Without a pace, two processors would be busy.
      #expect(spent < 0.2 * passed, "\(spent) s in \(passed) s")
      let blocks = (last["unstamped"] as? Int ?? 0) - first
      // One for each 10 ms, and what came between the questions and their answers.
      #expect(blocks > 0 && Double(blocks) <= 100 * passed + 20, "\(blocks) in \(passed) s")
      #expect(last["timestamps"] as? String == "clock" && last["losses"] as? Int == 0, "\(last)")
      #expect(program.errorSoFar.components(separatedBy: words).count == 2, "\(program.errorSoFar)")
    }
  }
#endif
