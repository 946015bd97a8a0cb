#if X264
  import Foundation
  import TestSupport
  import Testing

  /// `/listen.mp3`, as curl and ffmpeg hear it.
  @Suite(.serialized) struct MP3Tests {
    private func sound(_ program: LookedAtProgram) throws -> [String: Any] {
      let text = try program.control("status", "--json", "--camera", "camera")
      let status = try #require(JSONSerialization.jsonObject(with: Data(text.utf8)) as? [String: Any])
      return try #require(status["sound"] as? [String: Any])
    }

    /// The time for which no sound was encoded so far, in seconds, and the number of frames that the encoder skipped.
    /// While somebody listens, both rise only where a machine that is held up leaves sound out.
    private func gaps(_ program: LookedAtProgram) throws -> (seconds: Double, skipped: Int) {
      let text = try program.control("status", "--json", "--camera", "camera")
      let status = try #require(JSONSerialization.jsonObject(with: Data(text.utf8)) as? [String: Any])
      let sound = try #require(status["sound"] as? [String: Any])
      let frames = try #require(sound["mp3_frames"] as? Int)
      // An MP3 frame is 24 ms long.
      let seconds = try #require(status["uptime_seconds"] as? Double) - 0.024 * Double(frames)
      return (seconds, try #require(sound["mp3_skipped"] as? Int))
    }

    /// The format of the sound that ffmpeg has got, in its words: codec, rate, channels, samples, bitrate. What stands in
    /// brackets depends on its version, as the decoder in `mp3 (mp3float)`.
    private static func format(_ player: Subprocess.Result) -> [String] {
      let words = player.error.components(separatedBy: "Audio: ").dropFirst().first?.prefix { $0 != "\n" } ?? ""
      return words.components(separatedBy: ", ").prefix(5).map { $0.components(separatedBy: " (")[0] }
    }

    private static let mp3 = ["mp3", "48000 Hz", "mono", "fltp", "64 kb/s"]

    @Test func `ffmpeg hears the test tone beep each second, while no picture and no Opus is encoded`() throws {
      let program = try LookedAtProgram(["--audio", "test", "--rtsp", "127.0.0.1:\(TCPPort.free())"])
      let heard = program.directory.path("heard.raw")
      func hear() throws -> Subprocess.Result {
        try Subprocess.run(
          [
            "ffmpeg", "-nostdin", "-v", "info", "-err_detect", "explode", "-xerror", "-i", program.url("/listen.mp3"),
            "-t", "6", "-af", "silencedetect=n=-40dB:d=0.2,volumedetect", "-y", "-f", "s16le", heard,
          ], in: program.directory)
      }
      let other = try Subprocess(
        ["curl", "-sS", "--max-time", "600", "-o", "/dev/null", program.url("/listen.mp3")], in: program.directory)
      defer { other.send(SIGKILL) }
      #expect(try eventually { try sound(program)["mp3_frames"] as? Int ?? 0 > 0 })
      // The tone goes on at the present time after a pause of the machine. What was heard then is heard again.
      var (before, player, attempts) = (try gaps(program), try hear(), 1)
      var after = try gaps(program)
      while after.seconds > before.seconds + 0.5 || after.skipped > before.skipped, attempts < 8 {
        (before, player, attempts) = (after, try hear(), attempts + 1)
        after = try gaps(program)
      }
      other.send(SIGKILL)
      #expect(player.status == 0, "\(player.error.suffix(2000))")
      #expect(Self.format(player) == Self.mp3, "\(player.error.suffix(2000))")
      // Each beep begins a second after the one before, by the samples that are heard.
      let beeps = player.error.components(separatedBy: "silence_end: ").dropFirst().compactMap {
        Double($0.prefix { $0.isNumber || $0 == "." })
      }
      #expect(beeps.count >= 5, "\(beeps)")
      // The last one is the end of the recording; the first may be one that ffmpeg has come into.
      for (beep, next) in zip(beeps.dropFirst(), beeps.dropFirst(2)).dropLast() {
        #expect(abs(next - beep - 1) < 0.02, "\(beeps)")
      }
      // A quarter of full scale.
      let volume = player.error.components(separatedBy: "max_volume: ").dropFirst().first?.prefix { $0 != " " }
      #expect(abs(try #require(volume.flatMap { Double($0) }) + 12) < 2)
      let samples = try Data(contentsOf: URL(fileURLWithPath: heard)).withUnsafeBytes {
        $0.bindMemory(to: Int16.self).map { Double($0) }
      }
      #expect(samples.count == 6 * 48_000)
      // Of a whole beep: two crossings of zero upwards are a thousandth of a second apart.
      let start = Int((beeps[1] + 0.02) * 48_000)
      let beep = samples[start..<start + 2400]
      let crossings = zip(beep, beep.dropFirst()).count { $0 < 0 && $1 >= 0 }
      #expect((49...51).contains(crossings), "\(crossings)")
      #expect(try eventually { try sound(program)["mp3_listeners"] as? Int == 0 })
      let figures = try sound(program)
      #expect(figures["mp3_frames"] as? Int ?? 0 >= 250 && figures["encoded"] as? Int == 0, "\(figures)")
      let text = try program.control("status", "--json", "--camera", "camera")
      let status = try #require(JSONSerialization.jsonObject(with: Data(text.utf8)) as? [String: Any])
      #expect((status["frames"] as? [String: Any])?["encoded"] as? Int == 0, "the encoder rests: \(text)")
    }

    @Test func `curl gets headers and an endless stream, and is counted while it listens`() throws {
      let program = try LookedAtProgram(["--audio", "test"])
      for path in ["/listen.mp3", "/cameras/camera/listen.mp3"] {
        let head = try program.curl(["-I"], path)
        let fields = HTTPFields(head.headers)
        #expect(head.status == 200 && fields["content-type"] == "audio/mpeg", "\(head)")
        #expect(fields["cache-control"] == "no-store" && fields["accept-ranges"] == "none", "\(head)")
        #expect(fields["cross-origin-resource-policy"] == "same-origin", "\(head)")
        #expect(fields.all("content-length") == [], "\(head)")
      }
      #expect(try sound(program)["mp3_frames"] as? Int == 0, "HEAD encodes nothing")
      // AppleCoreMedia asks for two bytes first.
      for arguments in [[], ["-H", "Range: bytes=0-1"], ["--http1.0"]] {
        let answer = try program.curl(arguments, "/listen.mp3", limit: 5)
        #expect(answer.status == 200 && answer.exit == 28 && answer.body.prefix(2) == Data([0xff, 0xfb]), "\(answer)")
        // 8 kB a second; how long the connection took is the machine's affair.
        #expect((1000...42_000).contains(answer.body.count), "\(answer.body.count)")
      }
      // The program notices that they have left a moment after they have.
      #expect(try eventually { try sound(program)["mp3_listeners"] as? Int == 0 })
      let listener = try Subprocess(
        ["curl", "-sS", "--max-time", "120", "-o", "/dev/null", program.url("/listen.mp3")], in: program.directory)
      defer { listener.send(SIGKILL) }
      #expect(try eventually { try sound(program)["mp3_listeners"] as? Int == 1 })
      let json = try program.control("viewers", "--json")
      let list = try #require(JSONSerialization.jsonObject(with: Data(json.utf8)) as? [String: Any])
      let viewers = try #require(list["viewers"] as? [[String: Any]])
      #expect(viewers.count { $0["kind"] as? String == "mp3" && $0["transport"] as? String == "http" } == 1, "\(json)")
      let shown = ProgramLog(try program.control("viewers")).lines
      #expect(shown.count { $0.hasPrefix("mp3 127.0.0.1:") } == 1, "\(shown)")
      let page = String(decoding: try program.curl([], "/metrics").body, as: UTF8.self)
      #expect(page.contains(#"nightjar_viewers{camera="camera",kind="mp3"} 1"#), "\(page)")
      listener.send(SIGKILL)
      #expect(try eventually { try sound(program)["mp3_listeners"] as? Int == 0 })
      // Those that have left before are told too.
      let isTold = eventually {
        let (log, start) = (program.process.log, "viewer mp3 http 127.0.0.1:")
        let joined = log.lines.count { $0.hasPrefix(start) && $0.hasSuffix(" is listening") }
        let ends = log.ends(ofViewers: "mp3")
        return joined == 4 && ends.count == 4 && ends.allSatisfy { $0.hasSuffix(" MP3 frames") }
      }
      #expect(isTold, "\(program.process.errorSoFar)")
    }

    @Test func `ffmpeg hears it over TLS, after a log-in`() throws {
      let port = try TCPPort.free()
      let program = try LookedAtProgram(
        ["--audio", "test", "--https", "127.0.0.1:\(port)"], users: ["anna": "correct-horse"])
      func listen(_ login: String) throws -> Subprocess.Result {
        try Subprocess.run(
          [
            "ffmpeg", "-nostdin", "-v", "info", "-err_detect", "explode", "-xerror", "-tls_verify", "0", "-i",
            "https://\(login)127.0.0.1:\(port)/listen.mp3", "-t", "3", "-af", "volumedetect", "-f", "null", "-",
          ], in: program.directory)
      }
      let player = try listen("anna:correct-horse@")
      #expect(player.status == 0, "\(player.error.suffix(2000))")
      #expect(Self.format(player) == Self.mp3, "\(player.error.suffix(2000))")
      // The beep's, a quarter of full scale.
      let volume = player.error.components(separatedBy: "max_volume: ").dropFirst().first?.prefix { $0 != " " }
      #expect(abs(try #require(volume.flatMap { Double($0) }) + 12) < 2)
      let start = "viewer mp3 https 127.0.0.1:"
      // The program has made its certificate itself: nothing else has changed.
      #expect(!program.process.errorSoFar.contains("they apply now"), "\(program.process.errorSoFar)")
      let isTold = eventually { program.process.log.lines.contains { $0.hasPrefix(start) } }
      #expect(isTold, "\(program.process.errorSoFar)")
      for login in ["", "anna:wrong-horse@"] {
        let refused = try listen(login)
        #expect(refused.status != 0 && refused.error.contains("401"), "\(refused.error.suffix(2000))")
      }
    }

    @Test func `a listener that does not read loses whole frames, is ended, and holds nobody up`() throws {
      let program = try LookedAtProgram(["--audio", "test"])
      let lazy = try Subprocess(
        [
          "python3", "-c",
          """
          import socket, sys, time
          s = socket.socket()
          s.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 2048)
          s.connect(("127.0.0.1", \(program.port)))
          s.sendall(b"GET /listen.mp3 HTTP/1.1\\r\\nHost: localhost\\r\\n\\r\\n")
          time.sleep(300)
          """,
        ], in: program.directory)
      defer { lazy.send(SIGKILL) }
      #expect(try eventually { try sound(program)["mp3_listeners"] as? Int == 1 })
      func lost() throws -> Int {
        let json = try program.control("viewers", "--json")
        let list = try #require(JSONSerialization.jsonObject(with: Data(json.utf8)) as? [String: Any])
        let viewers = try #require(list["viewers"] as? [[String: Any]])
        return viewers.filter { $0["kind"] as? String == "mp3" }.compactMap { $0["frames_dropped"] as? Int }.max() ?? 0
      }
      #expect(try eventually { try lost() > 0 })
      // Another one hears whole frames meanwhile.
      let answer = try program.curl([], "/listen.mp3", limit: 5)
      #expect(answer.body.count > 1000)
      for start in stride(from: 0, to: answer.body.count - 1, by: 192) {
        #expect(answer.body[start] == 0xff && answer.body[start + 1] == 0xfb, "\(start)")
      }
      #expect(try eventually(within: 90) { try sound(program)["mp3_listeners"] as? Int == 0 } && lazy.isRunning)
    }

    @Test func `who listens gets silence while it is muted, and the line goes on`() throws {
      let program = try LookedAtProgram(["--audio", "test"])
      _ = try program.control("audio", "mute")
      let player = try Subprocess.run(
        [
          "ffmpeg", "-nostdin", "-v", "info", "-i", program.url("/listen.mp3"), "-t", "2", "-af", "volumedetect", "-f",
          "null", "-",
        ], in: program.directory)
      let volume = player.error.components(separatedBy: "max_volume: ").dropFirst().first?.prefix { $0 != " " }
      #expect(try #require(volume.flatMap { Double($0) }) < -80, "\(player.error.suffix(2000))")
    }

    @Test func `a stream without sound says so, and how to mend it`() throws {
      let silent = try LookedAtProgram(["--audio", "none"])
      for arguments in [[], ["-I"]] {
        #expect(try silent.curl(arguments, "/listen.mp3").status == 404)
      }
      let refusal = try FailureAnswer(try silent.curl([], "/listen.mp3").body)
      let mend = "nightjar devices lists microphones, and --audio takes one"
      #expect(refusal.failure == "no_input" && refusal.error == "camera camera has no sound: \(mend)", "\(refusal)")
    }

    @Test(.enabled(if: PictureAccessTests.address != nil))
    func `beyond loopback a listener logs in`() throws {
      let address = try #require(PictureAccessTests.address)
      let program = try LookedAtProgram(
        ["--audio", "test"], address: address, users: ["anna": "correct horse battery"])
      #expect(try program.curl([], "/listen.mp3").status == 401)
      let login = ["--digest", "-u", "anna:correct horse battery"]
      let answer = try program.curl(login, "/listen.mp3", limit: 5)
      #expect(answer.status == 200 && answer.body.count > 1000, "\(answer.status)")
    }

    @Test func `a listener who stays gets the sound of the pipeline that follows after a reload`() throws {
      let port = try TCPPort.free()
      func text(_ size: String) -> String {
        "source = 'test'\nsize = '\(size)'\naudio = 'test'\nhttp = '127.0.0.1:\(port)'\nwebrtc-port = 0\n"
      }
      let program = try ConfiguredProgram(text("320x240"))
      let file = program.directory.path("heard.mp3")
      let listener = try Subprocess(
        ["curl", "-sS", "--max-time", "120", "-o", file, "http://127.0.0.1:\(port)/listen.mp3"], in: program.directory)
      defer { listener.send(SIGKILL) }
      func bytes() -> Int { (try? Data(contentsOf: URL(fileURLWithPath: file)))?.count ?? 0 }
      #expect(eventually { bytes() > 4000 })
      try program.write(text("480x360"))
      #expect(try program.reload() == ["camera": "restarted"])
      let before = bytes()
      #expect(eventually { bytes() > before + 16_000 } && listener.isRunning)
      listener.send(SIGKILL)
      // Frames of two encoders, one after another: none is broken.
      let whole = try Data(contentsOf: URL(fileURLWithPath: file))
      for start in stride(from: 0, to: whole.count - 1, by: 192) {
        #expect(whole[start] == 0xff && whole[start + 1] == 0xfb, "\(start)")
      }
      try program.end()
    }
  }
#endif
