#if X265
  import Foundation
  import Media
  import TestSupport
  import Testing

  /// HEVC as players see it.
  @Suite(.serialized) struct HEVCTests {
    private static let options = ["--codec", "hevc", "--x264-preset", "ultrafast"]
    private static let gstreamer = "rtph265depay ! h265parse ! avdec_h265"

    @Test(arguments: [("320x240", ""), ("642x362", "?mtu=576")])
    func `every frame of a clip arrives by RTP, and the picture is the clip's`(size: String, options: String) throws {
      let directory = try TemporaryDirectory()
      let (path, frames) = (directory.path("clip.y4m"), 45)
      let made = try Subprocess.run(
        [
          "ffmpeg", "-v", "error", "-f", "lavfi", "-i", "testsrc2=size=\(size):rate=30", "-frames:v", "\(frames)",
          "-pix_fmt", "yuv420p", "-y", path,
        ], in: directory)
      #expect(made.status == 0, "\(made.error)")
      let numbers = size.split(separator: "x").compactMap { Int($0) }
      let reception = try Reception.ofClip(
        path, Self.options + ["--bitrate", "4M", "--keyframe-interval", "1s"], size: (numbers[0], numbers[1]),
        options: options, in: directory)
      #expect(reception.receiverLog.isEmpty, "\(reception.receiverLog)")
      let description = try String(contentsOfFile: reception.description, encoding: .utf8)
      #expect(DescriptionLines(description).encodings.first == "H265/90000", "\(description)")
      #expect(reception.pictureCount == frames && reception.figure("frames", "sent") == frames)
      #expect(reception.figure("frames", "dropped") == 0 && reception.figure("frames", "key_frames") == 2)
      let comparison = try Subprocess.run(
        [
          "ffmpeg", "-v", "info", "-f", "rawvideo", "-pix_fmt", "yuv420p", "-s", size, "-r", "30", "-i",
          reception.pictures.path, "-i", path, "-lavfi", "ssim", "-f", "null", "-",
        ], in: directory)
      let all = comparison.error.split(separator: " ").last { $0.hasPrefix("All:") }?.dropFirst(4)
      let similarity = try #require(all.flatMap { Double($0) }, "\(comparison.error)")
      #expect(similarity > 0.93, "SSIM \(similarity)")
    }

    @Test func `ffmpeg, GStreamer and mpv play by RTSP, and a rotation gives other parameter sets`() throws {
      let program = try ServedProgram(Self.options)
      for transport in ["udp", "tcp"] {
        let ffmpeg = try program.ffmpeg(program.url(), transport: transport)
        let gstreamer = try program.gstreamer(program.url(), protocols: transport, elements: Self.gstreamer)
        let mpv = try Subprocess(
          [
            "mpv", "--no-config", "--rtsp-transport=\(transport)", "--demuxer-lavf-o=min_port=33000,max_port=60000",
            "--vo=null", "--ao=null", "--untimed", "--frames=20", "--msg-level=all=v", program.url(),
          ], in: program.directory)
        try expectDecoded(ffmpeg)
        try expectPlayed(gstreamer)
        let shown = try mpv.wait(limit: 60)
        #expect(shown.status == 0, "\(shown.outputText.suffix(2000))")
        #expect(
          shown.outputText.contains("hevc") && shown.outputText.contains("320x240"), "\(shown.outputText.suffix(3000))")
      }
      let before = try RTSPClient(port: program.port).request("DESCRIBE").body
      #expect(DescriptionLines(before).encodings.first == "H265/90000", "\(before)")
      #expect(before.contains("sprop-sps="), "\(before)")
      #expect(try PlayableMedia.of(before).map(\.codec) == ["H265"])
      let player = try program.ffmpeg(program.url(), frames: 200, options: ["-autorotate", "0"])
      #expect(eventually { player.errorSoFar.contains("frame=") })
      _ = try program.control("rotate", "90")
      try expectDecoded(player)
      try expectDecoded(try program.ffmpeg(program.url()), size: "240x320")
      #expect(try RTSPClient(port: program.port).request("DESCRIBE").body != before)
      let result = try program.end()
      #expect(result.status == 0, "\(result.error)")
    }

    @Test func `the printed GStreamer pipeline decodes pictures`() throws {
      let directory = try TemporaryDirectory()
      let program = try Subprocess(
        [
          nightjarPath, "stream", "--source", "test", "--size", "320x240", "--keyframe-interval", "1s", "--to",
          "rtp://127.0.0.1:\(try UDPPort.free())", "--sdp", directory.path("g.sdp"),
        ] + Self.options, in: directory)
      defer { program.send(SIGTERM) }
      #expect(eventually { !program.log.commands(for: "GStreamer").isEmpty })
      let line = try #require(program.log.commands(for: "GStreamer").first)
      let command = line.replacingOccurrences(of: "autovideosink sync=false", with: countingSink(20))
      let viewer = try Subprocess.run(["sh", "-c", command], in: directory, limit: 60)
      #expect(viewer.hasPlayed, "\(command) \(viewer.outputText)\(viewer.error)")
    }

    @Test func `the transport stream is whole, and VLC shows it`() throws {
      let directory = try TemporaryDirectory()
      let stream = try FFmpegTests.keepTransportStream(Self.options, in: directory)
      let probe = try StreamProbe(path: stream, in: directory)
      #expect(probe.values["codec_name"] == "hevc" && probe.values["width"] == "640", "\(probe.values)")
      #expect(probe.frames > 60 && probe.complaints.isEmpty, "\(probe.frames) \(probe.complaints)")

      try FileManager.default.setAttributes([.posixPermissions: 0o777], ofItemAtPath: directory.url.path)
      let port = try UDPPort.free()
      let unprivileged = getuid() == 0 ? ["setpriv", "--reuid=65534", "--regid=65534", "--clear-groups"] : []
      let viewer = try Subprocess(
        unprivileged + [
          "env", "HOME=\(directory.url.path)", "XDG_RUNTIME_DIR=\(directory.url.path)", "cvlc", "-vv", "--no-audio",
          "--vout=vdummy", "--network-caching=150", "rtp://@127.0.0.1:\(port)",
        ], in: directory)
      defer { viewer.send(SIGKILL) }
      #expect(try eventually(within: 60) { try UDPPort.isBound(port) }, "\(viewer.errorSoFar.suffix(2000))")
      let program = try Subprocess(
        [
          nightjarPath, "stream", "--source", "test", "--size", "640x360", "--keyframe-interval", "1s", "--to",
          "rtp://127.0.0.1:\(port)?payload=mp2t",
        ] + Self.options, in: directory)
      defer { program.send(SIGTERM) }
      #expect(
        eventually(within: 60) { viewer.errorSoFar.contains("640x360") || viewer.errorSoFar.contains("640x368") },
        "\(viewer.errorSoFar.suffix(3000))")
      let log = viewer.errorSoFar
      #expect(log.contains("hevc") && !log.contains("discontinuity received"), "\(log.suffix(3000))")
    }

    @Test(arguments: [[], ["--no-standby"]])
    func `twenty rotations and changes of the bitrate are one stream, without a missing picture`(
      arguments: [String]
    ) throws {
      let recorder = try DatagramRecorder()
      func text(_ number: Int) -> String {
        """
        source = 'test'
        size = '320x240'
        codec = 'hevc'
        bitrate = '\(500 + number * 40)k'
        orientation = \(number.isMultiple(of: 2) ? 0 : 90)
        to = ['rtp://127.0.0.1:\(recorder.port)']
        """
      }
      let program = try ConfiguredProgram(text(0), arguments: arguments)
      func camera() throws -> [String: Any] {
        try #require((try program.answer("status")["cameras"] as? [[String: Any]])?.first)
      }
      try #require(eventually(within: 90) { recorder.count > 0 }, "\(program.process.errorSoFar)")
      for turn in 1...20 {
        try program.write(text(turn))
        #expect(try program.reload() == ["camera": "changed"], "\(program.process.errorSoFar)")
        // A newer rotation would take the place of one that the encoder has not begun.
        let isRotated = try eventually { (try camera()["orientation"] as? [String: Any])?["switches"] as? Int == turn }
        try #require(isRotated, "\(program.process.errorSoFar)")
        let count = recorder.count
        try #require(eventually { recorder.count > count })
      }
      let status = try camera()
      let encoder = try #require(status["encoder"] as? [String: Any])
      #expect((encoder["name"] as? String)?.hasPrefix("x265") == true && encoder["bitrate"] as? Int == 1_300_000)
      #expect((status["orientation"] as? [String: Any])?["switches"] as? Int == 20)
      try program.end()
      let recording = try StreamRecording(recorder.finish(), codec: .hevc)
      #expect(recording.sizes == (0...20).map { $0.isMultiple(of: 2) ? "320x240" : "240x320" })
    }

    @Test func `a reload changes the codec, and the description follows`() throws {
      let port = try TCPPort.free()
      func text(_ codec: String) -> String {
        "source = 'test'\nsize = '320x240'\nrtsp = '127.0.0.1:\(port)'\ncodec = '\(codec)'\n"
      }
      let program = try ConfiguredProgram(text("h264"), until: "rtsp")
      func encoding() throws -> String? {
        DescriptionLines(try RTSPClient(port: port).request("DESCRIBE").body).encodings.first
      }
      #expect(try encoding() == "H264/90000")
      for (codec, name) in [("hevc", "H265"), ("h264", "H264")] {
        try program.write(text(codec))
        #expect(try program.reload() == ["camera": "restarted"], "\(program.process.errorSoFar)")
        #expect(try encoding() == "\(name)/90000")
        let player = try Subprocess.run(
          [
            "ffmpeg", "-nostdin", "-v", "info", "-rtsp_transport", "tcp", "-i", "rtsp://127.0.0.1:\(port)/camera",
            "-frames:v", "10", "-f", "null", "-",
          ], in: program.directory, limit: 60)
        #expect(player.status == 0 && player.error.contains(codec), "\(player.error.suffix(2000))")
      }
      try program.end()
    }
  }
#endif
