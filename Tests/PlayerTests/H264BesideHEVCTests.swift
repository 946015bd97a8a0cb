#if X264 && X265
  import Foundation
  import TestSupport
  import Testing

  /// H.264 of a camera whose codec is HEVC, as players and programs get it.
  @Suite(.serialized) struct H264BesideHEVCTests {
    private static let options = ["--codec", "hevc", "--x264-preset", "ultrafast"]

    /// Returns what `nightjar ctl` says of the only camera's H.264; nil before the first viewer.
    private func rendition(_ program: ServedProgram) throws -> [String: Any]? {
      let answer = try JSONSerialization.jsonObject(with: Data(program.control("status", "--json").utf8))
      let camera = ((answer as? [String: Any])?["cameras"] as? [[String: Any]])?.first
      return camera?["h264_rendition"] as? [String: Any]
    }

    /// Returns the codecs of the viewers, as far as they get another one than the camera's.
    private func codecs(_ program: ServedProgram) throws -> [String?] {
      let answer = try JSONSerialization.jsonObject(with: Data(program.control("viewers", "--json").utf8))
      let viewers = (answer as? [String: Any])?["viewers"] as? [[String: Any]] ?? []
      return viewers.map { $0["codec"] as? String }
    }

    /// Waits until the processors suffice for the H.264: a start may keep them busy.
    private func awaitRoom(_ program: ServedProgram) throws {
      let isOffered = try eventually {
        try RTSPClient(port: program.port, path: "camera/h264").request("DESCRIBE").status == 200
      }
      #expect(isOffered, "\(program.process.errorSoFar)")
    }

    @Test func `a player of the URL for H.264 decodes every picture while another decodes HEVC`() throws {
      let program = try ServedProgram(Self.options)
      let url = "rtsp://localhost:\(program.port)/camera/h264"
      let isTold = eventually { program.process.log.commands(for: "for players without HEVC") == [url] }
      #expect(isTold, "\(program.process.errorSoFar)")
      #expect(try rendition(program) == nil)
      try awaitRoom(program)
      func play() throws -> [Subprocess] {
        [
          try program.ffmpeg(program.url(), frames: 300),
          try program.ffmpeg(program.url() + "/h264", transport: "udp", frames: 300),
        ]
      }
      func bothWatch() throws -> Bool {
        let watched = try codecs(program)
        guard watched.count == 2, watched.compactMap({ $0 }) == ["h264"] else { return false }
        return try rendition(program)?["running"] as? Bool == true
      }
      var (players, areTogether) = (try play(), false)
      for attempt in 0..<5 where !areTogether {
        // Where programs start slowly, one had all its pictures before the other came.
        if attempt > 0 {
          for player in players { try expectDecoded(player) }
          players = try play()
        }
        _ = try eventually(within: 300) {
          areTogether = try bothWatch()
          return areTogether || players.contains { !$0.isRunning }
        }
      }
      #expect(areTogether, "\(program.process.errorSoFar)")
      let gstreamer = try program.gstreamer(program.url() + "/h264", protocols: "tcp")
      try expectPlayed(gstreamer)
      for (player, codec) in zip(players, ["Video: hevc", "Video: h264"]) {
        try expectDecoded(player)
        #expect(player.errorSoFar.contains(codec), "\(player.errorSoFar.suffix(2000))")
      }
      #expect(eventually { (try? rendition(program)?["running"] as? Bool) == false })
      let start = "             H.264 of 320x240 for viewers without HEVC: nobody needs it now; "
      let shown = ProgramLog(try program.control("status")).lines
      #expect(shown.count { $0.hasPrefix(start) && $0.hasSuffix(" dropped") } == 1, "\(shown)")
      let result = try program.end()
      #expect(result.status == 0, "\(result.error)")
    }

    @Test func `a rotation and another bitrate concern the H.264 too`() throws {
      let program = try ServedProgram(Self.options)
      try awaitRoom(program)
      let player = try program.ffmpeg(program.url() + "/h264", frames: 200, options: ["-autorotate", "0"])
      #expect(eventually { player.errorSoFar.contains("frame=") })
      _ = try program.control("bitrate", "300k")
      _ = try program.control("rotate", "90")
      try expectDecoded(player)
      try expectDecoded(try program.ffmpeg(program.url() + "/h264"), size: "240x320")
      let result = try program.end()
      #expect(result.status == 0, "\(result.error)")
    }

    @Test func `the description of HEVC names the URL of H.264, and ffmpeg shows it`() throws {
      let program = try ServedProgram(Self.options + ["--audio", "test"])
      let probe = try Subprocess.run(
        [
          "ffprobe", "-v", "error", "-rtsp_transport", "tcp", "-show_entries", "format_tags", "-of", "default=nw=1",
          program.url(),
        ], in: program.directory, limit: 60)
      let words = "TAG:comment=H.264 for players without HEVC: \(program.url())/h264"
      #expect(probe.outputText.contains(words), "\(probe.outputText) \(probe.error)")
      // Players that are stricter than ffmpeg read it too, and that of the H.264.
      for (path, codec, lines) in [("camera", "H265", 1), ("camera/h264", "H264", 0)] {
        let text = try RTSPClient(port: program.port, path: path).request("DESCRIBE").body
        let media = try PlayableMedia.of(text)
        #expect(media.map(\.codec) == [codec, "OPUS"], "\(text)")
        #expect(media.map(\.control) == ["trackID=0", "trackID=1"], "\(text)")
        #expect(DescriptionLines(text)["i"].count == lines, "\(text)")
      }
    }

    @Test(.enabled(if: sysconf(CInt(_SC_NPROCESSORS_ONLN)) <= 24, "a hundredth of more processors suffices"))
    func `where the processors do not suffice, players and browsers are told so, and what would help`() throws {
      let (rtsp, https) = (try TCPPort.free(), try TCPPort.free())
      // Half the size needs more than a hundredth of 24 processors.
      let program = try ConfiguredProgram(
        """
        source = 'test'
        size = '1920x1080'
        fps = '60'
        codec = 'hevc'
        cpu-budget = '1%'
        rtsp = '127.0.0.1:\(rtsp)'
        https = '127.0.0.1:\(https)'

        """, environment: ["NIGHTJAR_WEBRTC_PORT": "0"], until: "rtsp  ")
      let refused = try RTSPClient(port: rtsp, path: "camera/h264").request("DESCRIBE")
      // Between them are the needed processors and those that are left.
      let start = "no H.264 beside HEVC: 960x540 needs about "
      let end = "; raise --cpu-budget, lower --size or --fps, or choose --codec h264"
      #expect(refused.status == 503, "\(refused)")
      #expect(refused.body.hasPrefix(start) && refused.body.hasSuffix(end + "\r\n"), "\(refused)")
      let own = try RTSPClient(port: rtsp).request("DESCRIBE")
      #expect(own.status == 200 && DescriptionLines(own.body).encodings.first == "H265/90000", "\(own)")
      let told = "a request of 127.0.0.1 refused: \(start)"
      let isTold = eventually { program.process.log.lines.contains { $0.hasPrefix(told) && $0.hasSuffix(end) } }
      #expect(isTold, "\(program.process.errorSoFar)")

      let offer = packageRoot.appendingPathComponent("Tests/WebRTCTests/Offers/chromium.sdp").path
      let answer = try Subprocess.run(
        [
          "curl", "-isSk", "--max-time", "60", "-w", "%{http_code}", "-H", "Content-Type: application/sdp",
          "--data-binary", "@\(offer)", "https://127.0.0.1:\(https)/whep",
        ], in: program.directory)
      #expect(answer.outputText.hasSuffix("406"), "\(answer.outputText) \(answer.error)")
      // There may be room later.
      let heads = answer.outputText.components(separatedBy: "\r\n\r\n").dropLast()
      let head = HTTPFields(heads.joined(separator: "\r\n\r\n"))
      #expect(head.status == 406 && head["retry-after"] == "10", "\(answer.outputText)")
      for words in ["the stream is H265", "raise --cpu-budget", "pictures as JPEG: /stream.mjpg"] {
        #expect(answer.outputText.contains(words), "\(answer.outputText)")
      }
      try program.end()
    }
  }
#endif
