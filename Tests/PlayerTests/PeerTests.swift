#if X264
  import Foundation
  import TestSupport
  import Testing

  /// WebRTC to a peer that is no browser: aiortc, whose ICE, DTLS, SRTP and RTP are its own.
  @Suite(.serialized) struct PeerTests {
    /// The output of peer.py.
    private struct Told: Decodable {
      let status: Int
      let answer: String
      let frames: [String: Int]
      let sizes: [[Int]]
      let loudest: Int
      /// The packets that got lost, but for those that the peer's own sockets had no room for while it got no
      /// processor.
      let lost: Int?
      let deleted: [Int]?
      let keys: [Int]?
    }

    /// Starts peer.py.
    private func start(_ program: WatchedProgram, _ options: [String], path: String = "/whep") throws -> Subprocess {
      let script = URL(fileURLWithPath: #filePath).deletingLastPathComponent().path + "/Clients/peer.py"
      return try Subprocess(["/usr/bin/python3", script, program.url(path)] + options, in: program.directory)
    }

    /// Waits for the end of peer.py.
    private func end(_ peer: Subprocess) throws -> Told {
      let result = try peer.wait(limit: 200)
      #expect(result.status == 0, "\(result.error.suffix(3000))")
      return try JSONDecoder().decode(Told.self, from: result.output)
    }

    private func watch(_ program: WatchedProgram, _ options: String..., path: String = "/whep") throws -> Told {
      try end(start(program, options, path: path))
    }

    /// Watches once more where packets are missing and the program says that it has left out frames, three times at most: a peer that
    /// gets no processor reports late, as one behind a weak network does.
    private func watchInTime(_ program: WatchedProgram, _ options: String..., path: String = "/whep") throws -> Told {
      func dropped() throws -> Double {
        let totals = try Scrape(program.directory.path("control"), in: program.directory)
        return totals["nightjar_viewer_frames_dropped_total"] ?? 0
      }
      for _ in 0..<2 {
        let before = try dropped()
        let told = try end(start(program, options, path: path))
        if try told.lost == 0 || dropped() == before { return told }
      }
      return try end(start(program, options, path: path))
    }

    @Test func `a peer gets pictures and sound, until it ends its session`() throws {
      let program = try WatchedProgram(["--audio", "test"])
      let told = try watchInTime(
        program, "seconds=2", "video=16", "audio=26", "loud=1000", path: "/cameras/camera/whep")
      #expect(told.status == 201, "\(told.answer)")
      #expect(told.sizes == [[320, 240]])
      #expect(told.frames["video", default: 0] > 15 && told.frames["audio", default: 0] > 25, "\(told.frames)")
      #expect(told.lost == 0)
      // The clapper's beep, not silence.
      #expect(told.loudest > 1000, "\(told.loudest)")
      // The first DELETE ends it; there is nothing for the second.
      #expect(told.deleted == [200, 404])
      let isTold = eventually {
        program.process.errorSoFar.firstMatch(of: /left camera after \d+ s: ended\n/) != nil
      }
      #expect(isTold, "\(program.process.errorSoFar)")
    }

    #if X265
      @Test func `of a camera with HEVC, a peer that offers H.264 and no H.265 gets H.264 with the sound`() throws {
        let program = try WatchedProgram(["--audio", "test", "--codec", "hevc"], encoder: "x265")
        let told = try watchInTime(program, "seconds=2", "video=16", "audio=26", "loud=1000")
        #expect(told.status == 201, "\(told.answer)")
        let encodings = DescriptionLines(told.answer).encodings
        #expect(encodings.contains("H264/90000") && !told.answer.contains("H265"), "\(told.answer)")
        #expect(told.sizes == [[320, 240]] && told.lost == 0)
        #expect(told.frames["video", default: 0] > 15 && told.frames["audio", default: 0] > 25, "\(told.frames)")
        #expect(told.loudest > 1000 && told.deleted == [200, 404], "\(told.loudest)")
        let status = try program.control("status", "--json")
        #expect(status.contains("\"h264_rendition\""), "\(status)")
        // One that offers neither is told of the pictures.
        let refused = try watch(program, "offer=noH264")
        let refusal = try FailureAnswer(refused.answer.utf8)
        #expect(refused.status == 406 && refusal.field == "offer", "\(refused.answer)")
        #expect(refusal.error.hasPrefix("the stream is H265"), "\(refused.answer)")
        #expect(refusal.error.hasSuffix("; pictures as JPEG: /stream.mjpg"), "\(refused.answer)")
      }
    #endif

    @Test func `a FIR is answered by a key frame, and its repetition by none`() throws {
      // With a preset of its own the encoder is not exchanged for a faster one, which would begin with a key frame.
      let program = try WatchedProgram(["--keyframe-interval", "600s", "--fps", "30", "--x264-preset", "ultrafast"])
      let told = try watch(program, "fir=1")
      let keys = try #require(told.keys, "\(told.answer)")
      #expect(keys.count == 4 && keys[0] > 0, "\(keys)")
      #expect(keys.map { $0 - keys[0] } == [0, 1, 1, 2], "\(keys)")
    }

    @Test func `a certificate other than the offer's gets nothing`() throws {
      let program = try WatchedProgram()
      // Four seconds and more: a handshake that is not over when the peer leaves is never refused.
      let refused = program.directory.path("refused")
      let peer = try start(program, ["offer=fingerprint", "until=\(refused)"])
      defer { peer.send(SIGKILL) }
      let isTold = eventually {
        program.process.errorSoFar.contains(
          "never got camera: the certificate of the browser is not that of its offer\n")
      }
      #expect(isTold, "\(program.process.errorSoFar)")
      _ = try program.directory.write([], as: "refused")
      let told = try end(peer)
      #expect(told.status == 201 && told.frames == [:], "\(told.frames)")
      // Without one, nobody could be told from another.
      let without = try watch(program, "offer=noFingerprint")
      #expect(without.status == 400 && without.answer.contains("a=fingerprint:sha-256"), "\(without.answer)")
    }

    @Test func `a token as Bearer lets a program watch`() throws {
      let directory = try TemporaryDirectory()
      let tokens = directory.path("tokens")
      let made = try ["view", "read"].map { role in
        try Subprocess.run([nightjarPath, "token", "add", role, "--role", role, "--tokens", tokens], in: directory)
          .outputText.trimmingCharacters(in: .newlines)
      }
      let program = try WatchedProgram(["--tokens", tokens])
      let told = try watch(program, "token=\(made[0])", "seconds=0", "video=1")
      #expect(
        told.status == 201 && told.frames["video", default: 0] > 0 && told.deleted == [200, 404], "\(told.answer)")
      #expect(try watch(program, "token=\(made[1])").status == 403)
      #expect(try watch(program, "token=\(made[0])x").status == 401)
    }

    @Test func `without its port, and without the camera's stream, an offer is refused by 501 and 503`() throws {
      let port = try UDPPort.free()
      let socket = try loopbackSocket(port: port)
      defer { close(socket) }
      let program = try WatchedProgram(["--webrtc-port", "\(port)"])
      let refused = try watch(program)
      let refusal = try FailureAnswer(refused.answer.utf8)
      #expect(refused.status == 501 && refusal.field == "webrtc-port", "\(refused.answer)")
      let reason = "browsers get no WebRTC here, because its UDP port is in use: the log says more"
      #expect(refusal.error == reason, "\(refused.answer)")

      let https = try TCPPort.free()
      let configured = try ConfiguredProgram(
        """
        https = '127.0.0.1:\(https)'
        rtsp = '127.0.0.1:\(try TCPPort.free())'
        [[camera]]
        name = 'room'
        source = 'test'
        size = '320x240'
        [[camera]]
        name = 'attic'
        source = 'file:nothing.y4m'

        """, arguments: [], environment: ["NIGHTJAR_WEBRTC_PORT": "0"], until: "https  ")
      let script = URL(fileURLWithPath: #filePath).deletingLastPathComponent().path + "/Clients/peer.py"
      func status(_ camera: String) throws -> Told {
        let url = "https://127.0.0.1:\(https)/cameras/\(camera)/whep"
        let result = try Subprocess.run(["/usr/bin/python3", script, url, "seconds=1"], in: configured.directory)
        return try JSONDecoder().decode(Told.self, from: result.output)
      }
      // Each camera is opened on a thread of its own.
      let isThere = try eventually {
        let cameras = try configured.answer("status")["cameras"] as? [[String: Any]] ?? []
        return cameras.contains { $0["name"] as? String == "room" }
      }
      #expect(isThere, "\(configured.process.errorSoFar)")
      let absent = try status("attic")
      #expect(absent.status == 503, "\(absent.answer) \(configured.process.errorSoFar)")
      #expect(try status("room").status == 201)
    }

    @Test func `only who may watch gets an answer, and gets the stream only for as long`() throws {
      let program = try WatchedProgram(users: ["anna": "correct horse"])
      let role = { (role: String) in
        let users = program.directory.path("users")
        let changed = try Subprocess.run(
          [nightjarPath, "user", "role", "anna", role, "--users", users], in: program.directory)
        #expect(changed.status == 0, "\(changed.error)")
        _ = try program.control("reload")
      }
      #expect(try watch(program).status == 401)
      #expect(try watch(program, "login=anna:wrong horse").status == 401)
      let script = URL(fileURLWithPath: #filePath).deletingLastPathComponent().path + "/Clients/peer.py"
      let peer = try Subprocess(
        ["/usr/bin/python3", script, program.url("/whep"), "login=anna:correct horse", "seconds=300"],
        in: program.directory)
      defer { peer.send(SIGKILL) }
      let watches = try eventually(within: 200) { try program.viewerKinds() == ["webrtc"] }
      try #require(watches, "\(program.process.errorSoFar) \(peer.errorSoFar)")
      try role("read")
      let isEnded = eventually(within: 60) {
        program.process.log.ends(ofViewers: "webrtc") == ["its log-in may not watch any more"]
      }
      #expect(isEnded, "\(program.process.errorSoFar)")
      #expect(try watch(program, "login=anna:correct horse").status == 403)
    }

    @Test func `what is no offer that can be answered gets a status that says why`() throws {
      let program = try WatchedProgram()
      let told = try watch(program, "offer=noH264")
      #expect(told.status == 406 && told.answer.contains("VP8"), "\(told.status) \(told.answer)")
      let sdp = ["-H", "Content-Type: application/sdp", "-H", "Expect:"]
      func post(_ body: String, _ headers: [String] = sdp, _ path: String = "/whep") throws -> Int {
        let file = program.directory.path("offer")
        try body.write(toFile: file, atomically: false, encoding: .utf8)
        return try program.curl(headers + ["--data-binary", "@\(file)"], path).status
      }
      #expect(try post("") == 400)
      #expect(try post("v=0\r\no=- 1 1 IN IP4 127.0.0.1\r\ns=-\r\nt=0 0\r\n") == 400)
      let media = "m=video 9 UDP/TLS/RTP/SAVPF 96\r\n"
      #expect(try post("v=0\r\n" + String(repeating: media, count: 100)) == 400)
      #expect(
        try post("v=0\r\n" + String(repeating: "a=x:\(String(repeating: "y", count: 1000))\r\n", count: 1000)) == 413)
      #expect(try post("v=0\r\n", ["-H", "Content-Type: application/json"]) == 415)
      #expect(try post("v=0\r\n", sdp, "/cameras/nobody/whep") == 404)
      // The others of the draft: the type tells players that offers are taken, and nothing is shown.
      let options = try program.curl(["-X", "OPTIONS"], "/whep")
      #expect(options.status == 200 && options.headers["accept-post"] == "application/sdp", "\(options)")
      for request in [["-I"], []] {
        let told = try program.curl(request, "/whep")
        #expect(told.status == 200 && told.headers["content-type"] == "application/sdp", "\(told)")
        #expect(told.headers["content-length"] == "0", "\(told)")
        #expect(try program.curl(request, "/cameras/nobody/whep").status == 404)
        #expect(try program.curl(request, "/whep/0123456789abcdef0123456789abcdef").status == 404)
      }
      #expect(try program.curl(["-X", "PUT"], "/whep").status == 405)
      #expect(try program.curl(["-X", "DELETE"], "/whep/0123456789abcdef0123456789abcdef").status == 404)
    }

    @Test func `a peer that is gone without a word is forgotten, and half-open sessions are limited`() throws {
      let program = try WatchedProgram()
      let told = try watch(program, "goodbye=0", "seconds=0", "video=1")
      #expect(told.frames["video", default: 0] > 0)
      let offer = try String(contentsOf: Self.offer, encoding: .utf8)
      let file = program.directory.path("offer")
      try offer.write(toFile: file, atomically: false, encoding: .utf8)
      let begun = ContinuousClock.now
      let asked = try Subprocess.run(
        [
          "curl", "-sSk", "--max-time", "100", "-H", "Content-Type: application/sdp", "--data-binary", "@\(file)", "-o",
          program.directory.path("answer"), "-w", "%{http_code}\n", program.url("/whep") + "?[1-40]",
        ], in: program.directory)
      let statuses = Dictionary(
        asked.outputText.split(separator: "\n").map { ($0, 1) }, uniquingKeysWith: +)
      // A session of which nothing is heard leaves its place to another after 20 s.
      let places = 16 * (1 + Int((ContinuousClock.now - begun) / Duration.seconds(20)))
      #expect((16...places).contains(statuses["201", default: 0]), "\(statuses), places: \(places)")
      #expect(statuses["201", default: 0] + statuses["429", default: 0] == 40, "\(statuses) \(asked.error)")
      // One that has connected is not held up, once those have expired.
      let isExpired = eventually(within: 100) {
        program.process.errorSoFar.components(separatedBy: "never got camera").count > 16
      }
      #expect(isExpired, "\(program.process.errorSoFar)")
      #expect(try watch(program, "seconds=0", "video=1").frames["video", default: 0] > 0)
      // By now consent of the first is over.
      let silent = "the browser is not heard any more"
      let isGone = eventually(within: 100) {
        program.process.log.ends(ofViewers: "webrtc").count { $0 == silent } == 1
      }
      #expect(isGone, "\(program.process.errorSoFar)")
    }

    /// An offer of Chromium.
    private static let offer = URL(fileURLWithPath: #filePath).deletingLastPathComponent()
      .deletingLastPathComponent().appending(path: "WebRTCTests/Offers/chromium.sdp")
  }
#endif
