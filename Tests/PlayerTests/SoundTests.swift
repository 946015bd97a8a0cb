#if X264
  import Foundation
  import TestSupport
  import Testing

  /// Sound beside the pictures, as players get it: the test tone beeps while a field of the test picture is white.
  @Suite(.serialized) struct SoundTests {
    /// The times at which the field becomes white, and those at which the beep begins, in seconds of the player's clock.
    ///
    /// A flash begins after the last dark picture, and at the latest with the first white one: within a thirtieth of a
    /// second, or longer where a busy machine misses pictures. It does not count where too many are missing.
    private struct FlashesAndBeeps {
      var flashes: [ClosedRange<Double>] = []
      var beeps: [Double] = []

      /// Reads what ffmpeg's `signalstats` and `silencedetect` say.
      init(_ log: String) {
        var (time, before, wasWhite) = (0.0, 0.0, true)
        for line in log.split(separator: "\n") {
          if let value = Self.value("pts_time:", in: line) { time = value }
          if let brightness = Self.value("YAVG=", in: line) {
            // Ten pictures a second suffice, of which each flash has one.
            if brightness > 225, !wasWhite, time > before, time - before < 0.25 { flashes.append(before...time) }
            (before, wasWhite) = (time, brightness > 225)
          }
          if let end = Self.value("silence_end: ", in: line) { beeps.append(end) }
        }
      }

      private static func value(_ name: String, in line: Substring) -> Double? {
        line.range(of: name).flatMap { Double(line[$0.upperBound...].prefix { $0.isNumber || $0 == "." }) }
      }

      /// The flashes that may have a beep. The player may have begun or ended between a flash and its beep. As it ends, it tells the end
      /// of a silence, too.
      var judged: [ClosedRange<Double>] {
        flashes.filter { $0.upperBound > (beeps.first ?? 0) - 0.5 && $0.upperBound < beeps.last ?? 0 }
      }

      /// The time from each flash to the beep that is nearest to it: from the nearest point where the flash may begin. There is a beep in
      /// each second: one that is farther away is another flash's, and this flash's was left out by a machine that paused.
      var skews: [Double] {
        judged.compactMap { flash in
          beeps.map { $0 - min(max($0, flash.lowerBound), flash.upperBound) }.min { abs($0) < abs($1) }
        }.filter { abs($0) <= 0.5 }
      }
    }

    /// Asserts that each beep begins with its flash.
    ///
    /// - Parameter later: the flashes and beeps at the start that do not count. The first reports of the clocks come to a
    ///   receiver without RTSP some tenths of a second after it has begun.
    private static func expectInStep(_ log: String, after later: Int = 0) {
      let times = FlashesAndBeeps(log)
      #expect(times.flashes.count >= 4 && times.beeps.count >= 4, "\(times) \(log.suffix(2000))")
      #expect(times.skews.count * 2 >= times.judged.count, "\(times)")
      let counted = times.skews.dropFirst(later)
      #expect(counted.count >= 2, "\(times)")
      for skew in counted { #expect(abs(skew) <= 0.012, "\(times)") }
    }

    /// All pictures, however busy the machine is: with fewer, flashes would be missing.
    private static let allPictures = FullPictures.options + ["--no-load-adaptation"]

    private static let filters = [
      "-fps_mode", "passthrough", "-vf", "crop=16:16:2:2,signalstats,metadata=print:key=lavfi.signalstats.YAVG",
      "-af", "silencedetect=n=-40dB:d=0.2", "-f", "null", "-",
    ]

    /// Plays by ffmpeg until there is as much as `expectInStep` counts; what it says.
    private static func play(
      _ input: [String], after later: Int = 0, network: [String] = [], in directory: TemporaryDirectory
    ) throws -> String {
      let player = try Subprocess(
        network + ["ffmpeg", "-nostdin", "-v", "info"] + input + filters, in: directory)
      defer { player.send(SIGKILL) }
      _ = eventually(within: 90) {
        let times = FlashesAndBeeps(player.errorSoFar)
        return times.flashes.count >= 4 && times.beeps.count >= 4 && times.skews.count >= later + 2
          && times.skews.count * 2 >= times.judged.count || !player.isRunning
      }
      player.send(SIGINT)
      let result = try player.wait(limit: 60)
      // 255 is that of a signal.
      #expect([0, 255].contains(result.status), "\(result.error.suffix(2000))")
      return result.error
    }

    @Test(arguments: ["tcp", "udp"])
    func `ffmpeg plays picture and sound in step`(transport: String) throws {
      let program = try ServedProgram(["--audio", "test"] + Self.allPictures)
      let media = try PlayableMedia.of(RTSPClient(port: program.port).request("DESCRIBE").body)
      #expect(media.map(\.codec) == ["H264", "OPUS"], "\(media)")
      #expect(media.map(\.control) == ["trackID=0", "trackID=1"], "\(media)")
      let log = try Self.play(FFmpegTransport.options(transport) + ["-i", program.url()], in: program.directory)
      Self.expectInStep(log)
    }

    /// MPEG-TS carries the sound beside the pictures. RTP and SRTP have ports of their own for it, in one description.
    @Test(arguments: ["mp2t", "rtp", "srtp"])
    func `ffmpeg plays picture and sound of a destination in step`(kind: String) throws {
      let directory = try TemporaryDirectory()
      let port = try UDPPort.free()
      let description = directory.path("camera.sdp")
      let url =
        switch kind {
        case "mp2t": "rtp://127.0.0.1:\(port)?payload=mp2t"
        case "rtp": "rtp://127.0.0.1:\(port)"
        default: "srtp://127.0.0.1:\(port)?audio=\(try UDPPort.free())"
        }
      let program = try Subprocess(
        [
          nightjarPath, "stream", "--source", "test", "--size", "320x240", "--keyframe-interval", "1s", "--audio",
          "test", "--control", "none", "--to", url, "--sdp", description,
        ] + Self.allPictures, in: directory)
      defer { program.send(SIGTERM) }
      #expect(eventually { program.log.isStreaming }, "\(program.errorSoFar)")
      if kind != "mp2t" {
        let media = try PlayableMedia.of(String(contentsOfFile: description, encoding: .utf8))
        #expect(media.map(\.codec) == ["H264", "OPUS"], "\(media)")
      }
      let input =
        kind == "mp2t"
        ? ["-i", "rtp://127.0.0.1:\(port)?buffer_size=4000000"]
        : ["-protocol_whitelist", "file,udp,rtp,srtp", "-buffer_size", "4000000", "-i", description]
      let later = kind == "mp2t" ? 0 : 2
      Self.expectInStep(try Self.play(input, after: later, in: directory), after: later)
    }

    @Test func `a destination whose port for sound is in use is told of`() throws {
      let directory = try TemporaryDirectory()
      let port = try UDPPort.free()
      let program = try Subprocess(
        [nightjarPath, "stream", "--source", "test", "--size", "320x240", "--audio", "test", "--control", "none"]
          + ["--to", "rtp://127.0.0.1:\(port)", "--to", "rtp://127.0.0.1:\(port + 4)?audio=none"], in: directory)
      defer { program.send(SIGTERM) }
      let words = "rtp://127.0.0.1:\(port) gets no sound: its port for sound, \(port + 4), is in use"
      #expect(eventually { program.errorSoFar.contains(words) }, "\(program.errorSoFar)")
      // The other one asked for none.
      #expect(program.errorSoFar.components(separatedBy: "gets no sound").count == 2, "\(program.errorSoFar)")
    }

    @Test func `GStreamer plays picture and sound of the transport stream`() throws {
      let directory = try TemporaryDirectory()
      let port = try UDPPort.free()
      let player = try Subprocess(
        [
          "sh", "-c",
          "exec gst-launch-1.0 udpsrc port=\(port) caps=application/x-rtp,media=video,encoding-name=MP2T ! "
            + "rtpjitterbuffer ! rtpmp2tdepay ! tsdemux name=d d. ! queue ! h264parse ! avdec_h264 ! "
            + "\(countingSink(30)) d. ! queue ! opusparse ! opusdec ! \(countingSink(50))",
        ], in: directory)
      defer { player.send(SIGKILL) }
      #expect(try eventually { try UDPPort.isBound(port) })
      let program = try Subprocess(
        [
          nightjarPath, "stream", "--source", "test", "--size", "320x240", "--keyframe-interval", "1s", "--audio",
          "test", "--control", "none", "--to", "rtp://127.0.0.1:\(port)?payload=mp2t",
        ], in: directory)
      defer { program.send(SIGTERM) }
      // It ends once it has decoded a second of both.
      try expectPlayed(player, counters: 2)
    }

    @Test func `who only listens leaves the encoder of pictures at rest, and gets silence while it is muted`() throws {
      let program = try ServedProgram(["--audio", "test"])
      /// Returns the peak of the beeps, or of silence, in dBFS: by the root mean square of most frames, because single
      /// samples of a coded sound may be some dB off.
      func peak() throws -> Double {
        let player = try Subprocess.run(
          ["ffmpeg", "-nostdin", "-v", "error", "-rtsp_transport", "tcp", "-allowed_media_types", "audio"]
            + ["-i", program.url(), "-t", "10", "-af"]
            + ["astats=metadata=1:reset=1,ametadata=print:key=lavfi.astats.Overall.RMS_level:file=-"]
            + ["-f", "null", "-"], in: program.directory)
        #expect(player.status == 0, "\(player.error.suffix(2000))")
        let levels = player.outputText.split(separator: "\n")
          .compactMap { $0.split(separator: "RMS_level=").last.flatMap { Double($0) } }
        #expect(levels.count > 125, "\(player.outputText.prefix(500))")
        let beeps = levels.filter { $0 > -30 }.sorted()
        // A sine's root mean square is 3 dB below its peak.
        return (beeps.isEmpty ? levels.max() ?? 0 : beeps[beeps.count / 2]) + 3
      }
      // A quarter of full scale.
      let loud = try peak()
      #expect(abs(loud + 12) < 1, "\(loud)")
      #expect(try sound(program, "mute")["muted"] as? Bool == true)
      #expect(try peak() < -60)
      #expect(try sound(program, "unmute")["muted"] as? Bool == false)
      #expect(try sound(program, "gain", "6")["gain_db"] as? Double == 6)
      let louder = try peak()
      #expect(abs(louder + 6) < 1, "\(louder)")
      let status = try #require(
        JSONSerialization.jsonObject(with: Data(program.control("status", "--json").utf8)) as? [String: Any])
      let cameras = try #require(status["cameras"] as? [[String: Any]])
      let frames = try #require(cameras.first?["frames"] as? [String: Any])
      #expect(frames["encoded"] as? Int == 0)
    }

    @Test func `who only watches gets no sound, and no sound is encoded`() throws {
      let program = try ServedProgram(["--audio", "test"])
      let video = ["-allowed_media_types", "video"]
      // It is there until it was seen.
      let watcher = try program.ffmpeg(program.url(), frames: 100_000, options: video)
      defer { watcher.send(SIGKILL) }
      #expect(try eventually { try viewers(program).contains { $0["packets"] as? Int ?? 0 > 0 } })
      let present = try viewers(program)
      #expect(present.count == 1 && present.first?["tracks"] as? [String] == ["picture"], "\(present)")
      watcher.send(SIGKILL)
      try expectDecoded(try program.ffmpeg(program.url(), frames: 60, options: video))
      let figures = try sound(program, "show")
      #expect(figures["encoded"] as? Int == 0, "\(figures)")
    }

    @Test(.enabled(if: OwnNetwork.isPossible, "needs user namespaces, ip and nsenter"))
    func `picture and sound come by multicast, in step`() throws {
      let directory = try TemporaryDirectory()
      let holder = try Subprocess(OwnNetwork.holder, in: directory)
      defer { holder.send(SIGKILL) }
      #expect(eventually { holder.outputSoFar.contains("ready") })
      let network = OwnNetwork.entering(holder)
      let program = try ServedProgram(
        ["--audio", "test", "--rtsp-multicast", "239.1.2.3:5004"] + Self.allPictures, network: network)
      let log = try Self.play(
        FFmpegTransport.options("udp_multicast") + ["-i", program.url()], network: network, in: directory)
      Self.expectInStep(log)
    }

    private func viewers(_ program: ServedProgram) throws -> [[String: Any]] {
      let answer = try JSONSerialization.jsonObject(with: Data(program.control("viewers", "--json").utf8))
      return try #require((answer as? [String: Any])?["viewers"] as? [[String: Any]])
    }

    @Test(arguments: ["tcp", "udp"])
    func `who plays picture and sound is one viewer, and is gone soon after its process was killed`(
      transport: String
    ) throws {
      let program = try ServedProgram(["--audio", "test"])
      func viewers() throws -> [[String: Any]] { try self.viewers(program) }
      let player = try program.ffmpeg(
        program.url(), transport: transport, frames: 100_000, options: ["-allowed_media_types", "video+audio"])
      defer { player.send(SIGKILL) }
      #expect(try eventually { try viewers().contains { $0["packets"] as? Int ?? 0 > 200 } })
      let present = try viewers()
      #expect(present.count == 1, "\(present)")
      #expect(present.first?["tracks"] as? [String] == ["picture", "sound"], "\(present)")
      #expect(present.first?["kind"] as? String == "rtsp")
      let samples = try Scrape(program.directory.path("control"), in: program.directory).samples
      #expect(samples[#"nightjar_viewers{camera="camera",kind="rtsp"}"#] == 1)
      #expect(samples[#"nightjar_viewers{camera="camera",kind="destination"}"#] == 0)
      player.send(SIGKILL)
      _ = try player.wait()
      // Without a sign of life, a session lasts a minute.
      #expect(try eventually(within: 40) { try viewers().isEmpty }, "\(program.process.errorSoFar)")
      #expect(eventually { program.process.log.ends(ofViewers: "rtsp").count == 1 }, "\(program.process.errorSoFar)")
      let log = program.process.errorSoFar
      #expect(log.components(separatedBy: " is watching with sound").count == 2, "\(log)")
      #expect(log.components(separatedBy: " left after ").count == 2, "\(log)")
      #expect(ProgramLog(log).lines.allSatisfy { !$0.hasSuffix(": nobody is listening yet") }, "\(log)")
      if transport == "udp" {
        #expect(log.components(separatedBy: "nobody is listening any more").count == 2, "\(log)")
      }
    }

    private func sound(_ program: ServedProgram, _ arguments: String...) throws -> [String: Any] {
      let answer = try Subprocess.run(
        [nightjarPath, "ctl", "audio"] + arguments + ["--json", "--socket", program.directory.path("control")],
        in: program.directory)
      #expect(answer.status == 0, "\(answer.error)")
      return try #require(JSONSerialization.jsonObject(with: Data(answer.outputText.utf8)) as? [String: Any])
    }

    @Test func `the level that the status shows is that of the last tenth of a second`() throws {
      let program = try ServedProgram(["--audio", "test"])
      // Nobody listens. The tone beeps for a tenth of each second.
      // By curl, which starts sooner than `nightjar ctl`.
      let ask = ["curl", "-sS", "--max-time", "60", "--unix-socket", program.directory.path("control")]
      func level() throws -> Double {
        // Even questions could keep step with the beep.
        usleep(.random(in: 0..<100_000))
        let answer = try Subprocess.run(ask + ["http://localhost/v1/audio"], in: program.directory)
        let figures = try? JSONSerialization.jsonObject(with: answer.output) as? [String: Any]
        return figures?["rms_dbfs"] as? Double ?? .nan
      }
      for _ in 0..<2 {
        #expect(try eventually(within: 120) { try level() > -30 })
        #expect(try eventually(within: 120) { try level() == -100 })
      }
      #expect(try sound(program, "show")["encoded"] as? Int == 0)
      let shown = ProgramLog(try program.control("status")).lines
      let heading = try #require(shown.firstIndex(of: "sound        test tone"), "\(shown)")
      #expect(shown.dropFirst(heading + 1).first?.hasPrefix("             level ") == true, "\(shown)")
      // What people see is the level of the last second: always that of a beep. A busy machine leaves a beep out.
      let isSteady = try eventually(within: 120) {
        try (0..<5).allSatisfy { _ in
          usleep(150_000)
          return try sound(program, "show")["loudest_rms_dbfs"] as? Double ?? .nan > -30
        }
      }
      #expect(isSteady)
      let words = "sound      test tone, Opus, 32 kbit/s; everybody who may watch may listen"
      #expect(program.process.errorSoFar.contains(words), "\(program.process.errorSoFar)")
    }

    @Test func `health tells a mute, and a microphone that is away`() throws {
      for (device, state) in [("test", "present"), ("hw:CARD=Nowhere", "absent")] {
        let port = try TCPPort.free()
        let program = try ServedProgram(["--audio", device, "--http", "127.0.0.1:\(port)"])
        func health() throws -> [String: Any] {
          let answer = try Subprocess.run(["curl", "-sS", "http://127.0.0.1:\(port)/healthz"], in: program.directory)
          let health = try JSONSerialization.jsonObject(with: Data(answer.outputText.utf8)) as? [String: Any]
          return try #require((health?["cameras"] as? [[String: Any]])?.first)
        }
        #expect(try eventually { try health()["sound"] as? String == state }, "\(program.process.errorSoFar)")
        #expect(try eventually { try health()["healthy"] as? Bool == true })
        guard state == "present" else { continue }
        _ = try sound(program, "mute")
        #expect(try eventually { try health()["sound"] as? String == "muted" })
        let urls = program.process.log.commands(for: "listen")
        #expect(urls == ["http://localhost:\(port)/listen.mp3"], "\(program.process.errorSoFar)")
      }
    }

    @Test func `a reload sets the gain while the stream goes on, and a mute outlives a restart`() throws {
      func text(_ more: String) -> String { "source = 'test'\nsize = '320x240'\naudio = 'test'\n\(more)\n" }
      let program = try ConfiguredProgram(text("audio-gain = 3"))
      #expect(try program.answer("audio", "show")["gain_db"] as? Double == 3)
      #expect(try program.answer("audio", "gain", "9")["gain_db"] as? Double == 9)
      _ = try program.answer("audio", "mute")
      // What ctl has changed goes back to the file's.
      #expect(try program.reload() == ["camera": "changed"])
      #expect(try program.answer("audio", "show")["gain_db"] as? Double == 3)
      try program.write(text("audio-gain = -6"))
      #expect(try program.reload() == ["camera": "changed"])
      #expect(try program.answer("audio", "show")["gain_db"] as? Double == -6)
      try program.write(text("audio-bitrate = '64k'"))
      #expect(try program.reload() == ["camera": "restarted"])
      let sound = try program.answer("audio", "show")
      #expect(sound["muted"] as? Bool == true && sound["gain_db"] as? Double == 0, "\(sound)")
      // The same camera under another name.
      try program.write(text("name = 'nursery'"))
      #expect(try program.reload() == ["camera": "removed", "nursery": "added"])
      #expect(try program.answer("audio", "show")["muted"] as? Bool == true)
      try program.end()
    }

    @Test func `a stream without sound says so, and a microphone that is not there becomes silence`() throws {
      let silent = try ServedProgram(["--audio", "none"])
      let refused = try Subprocess.run(
        [nightjarPath, "ctl", "audio", "mute", "--socket", silent.directory.path("control")], in: silent.directory)
      #expect(refused.status == 66, "\(refused.error)")
      let answer = try Subprocess.run(
        [
          "curl", "-sS", "-o", "/dev/null", "-w", "%{http_code}", "--unix-socket", silent.directory.path("control"),
          "http://localhost/v1/audio",
        ], in: silent.directory)
      #expect(answer.outputText == "404", "\(answer.error)")
      let absent = try ServedProgram(["--audio", "hw:CARD=Nowhere"])
      #expect(try sound(absent)["present"] as? Bool == false)
      try expectDecoded(absent.ffmpeg(absent.url()))
    }
  }
#endif
