#if X264
  import Foundation
  import RTP
  import TestSupport
  import Testing

  /// Pictures whose slices leave one by one, as players see them.
  @Suite(.serialized) struct SliceStreamingTests {
    private static let options = ["--encoder", "x264", "--preset", "ultra-low-latency"]

    @Test(arguments: [("320x240", "1", ""), ("1280x720", "1", "?mtu=1400"), ("642x362", "2", "?mtu=576")])
    func `ffmpeg decodes every picture of a clip`(size: String, threads: String, destination: String) throws {
      let directory = try TemporaryDirectory()
      let (frames, clip) = (60, directory.path("clip.y4m"))
      let made = try Subprocess.run(
        [
          "ffmpeg", "-v", "error", "-f", "lavfi", "-i", "testsrc2=size=\(size):rate=30", "-frames:v", "\(frames)",
          "-pix_fmt", "yuv420p", "-y", clip,
        ], in: directory)
      try #require(made.status == 0, "\(made.error)")
      let numbers = size.split(separator: "x").compactMap { Int($0) }
      let reception = try Reception.ofClip(
        clip, Self.options + ["--bitrate", "8M", "--keyframe-interval", "1s", "--threads", threads],
        size: (numbers[0], numbers[1]), options: destination, in: directory)
      #expect(reception.receiverLog.isEmpty, "\(reception.receiverLog)")
      #expect(reception.figure("frames", "sent") == frames && reception.figure("frames", "dropped") == 0)
      #expect(reception.pictureCount == frames)
      #expect(reception.figure("frames", "key_frames") == 2)
    }

    @Test(arguments: ["ultra-low-latency", "live-capture"])
    func `each slice is a packet, and a lost one costs no more`(preset: String) throws {
      let directory = try TemporaryDirectory()
      let recorder = try DatagramRecorder()
      let clip = directory.path("noise.y4m")
      let made = try Subprocess.run(
        [
          "ffmpeg", "-v", "error", "-f", "lavfi", "-i", "testsrc2=size=640x360:rate=30,noise=alls=6:allf=t",
          "-frames:v",
          "60", "-pix_fmt", "yuv420p", "-y", clip,
        ], in: directory)
      try #require(made.status == 0, "\(made.error)")
      let running = try Subprocess(
        [
          nightjarPath, "stream", "--control", "none", "--source", "file:\(clip)", "--loop", "20", "--encoder", "x264",
          "--preset", preset, "--slice-size", "mtu", "--keyframe-interval", "1s", "--bitrate", "2M",
          "--pacing", "0", "--to", "rtp://127.0.0.1:\(recorder.port)?mtu=600",
        ], in: directory)
      // Nearly as many as come within four seconds, of which a busy host misses some.
      _ = eventually(within: 60) { recorder.timestampCount > 110 || !running.isRunning }
      running.send(SIGTERM)
      let program = try running.wait()
      #expect(program.status == 0, "\(program.error)")
      let packets = recorder.finish()
      let pictures = Set(packets.map { $0[4..<8] }).count
      try #require(pictures > 30)
      #expect(packets.allSatisfy { $0.count <= 600 && $0[12] & 0x1f != 28 }, "a fragment")
      #expect(packets.count > pictures * 4, "\(packets.count) packets, \(pictures) pictures")
      #expect(try StreamRecording(packets).pictures == Array(repeating: "640x360", count: pictures))

      // One in a hundred is lost, never the parameter sets: the decoder conceals its slice, and shows every picture.
      var depacketizer = H264Depacketizer()
      var stream = Data()
      for (index, packet) in packets.enumerated() where index % 100 != 57 || packet[12] & 0x1f == 24 {
        try packet.withUnsafeBytes { try depacketizer.receive($0) { unit in stream.append(contentsOf: unit.annexB) } }
      }
      let path = directory.path("lossy.h264")
      try stream.write(to: URL(fileURLWithPath: path))
      let decoded = try Subprocess.run(
        [
          "ffprobe", "-v", "quiet", "-count_frames", "-show_entries", "stream=nb_read_frames", "-of", "csv=p=0", path,
        ], in: directory)
      #expect(Int(decoded.outputText.filter(\.isNumber)) ?? 0 >= pictures - 1, "\(decoded.outputText) of \(pictures)")
    }

    @Test(arguments: ["ultra-low-latency", "live-capture"])
    func `pictures of noise have room, however finely they are coded`(preset: String) throws {
      let directory = try TemporaryDirectory()
      var clip = Data("YUV4MPEG2 W320 H240 F30:1 Ip C420\n".utf8)
      var noise = SystemRandomNumberGenerator()
      for _ in 0..<5 {
        clip += Data("FRAME\n".utf8)
        for _ in 0..<320 * 240 * 3 / 16 { withUnsafeBytes(of: noise.next()) { clip.append(contentsOf: $0) } }
      }
      try clip.write(to: URL(fileURLWithPath: directory.path("noise.y4m")))
      let recorder = try DatagramRecorder()
      let program = try Subprocess.run(
        [
          nightjarPath, "stream", "--control", "none", "--source", "file:\(directory.path("noise.y4m"))", "--loop", "1",
          "--rate", "max", "--encoder", "x264", "--preset", preset, "--rate-control", "cqp", "--quantizer", "1",
          "--pacing", "0", "--to", "rtp://127.0.0.1:\(recorder.port)", "--stats-json", "-",
        ], in: directory)
      #expect(program.status == 0, "\(program.error)")
      let figures = try JSONSerialization.jsonObject(with: program.output) as? [String: Any]
      let frames = try #require(figures?["frames"] as? [String: Any])
      #expect(frames["sent"] as? Int == 5 && frames["dropped"] as? Int == 0, "\(frames)")
      #expect(program.log.lines.count { $0.hasSuffix(" 5 sent, 0 dropped") } == 1, "\(program.error)")
    }

    @Test func `the transport stream is whole`() throws {
      let directory = try TemporaryDirectory()
      let stream = try FFmpegTests.keepTransportStream(Self.options, in: directory)
      let probe = try Subprocess.run(
        [
          "ffprobe", "-v", "error", "-count_frames", "-show_entries", "stream=nb_read_frames", "-of", "csv=p=0",
          stream,
        ], in: directory)
      #expect(probe.error.isEmpty, "\(probe.error)")
      #expect(Int(probe.outputText.filter(\.isNumber)) ?? 0 > 20, "\(probe.outputText)")
    }

    @Test(arguments: ["rtp://127.0.0.1:%", "srtp://127.0.0.1:%?suite=AEAD_AES_128_GCM"])
    func `the printed GStreamer pipeline decodes pictures`(destination: String) throws {
      let directory = try TemporaryDirectory()
      let address = destination.replacingOccurrences(of: "%", with: "\(try UDPPort.free())")
      let program = try Subprocess(
        [nightjarPath, "stream", "--control", "none", "--source", "test", "--size", "320x240"] + Self.options + [
          "--keyframe-interval", "1s", "--to", address, "--sdp", directory.path("g.sdp"),
        ], in: directory)
      defer { program.send(SIGTERM) }
      let player =
        destination.hasPrefix("srtp") ? "GStreamer (its key shows in that host's list of processes)" : "GStreamer"
      #expect(eventually { !program.log.commands(for: player).isEmpty })
      let line = try #require(program.log.commands(for: player).first)
      // No display here: the same pipeline, counting pictures instead of showing them.
      let command = line.replacingOccurrences(of: "autovideosink sync=false", with: countingSink(20))
      let viewer = try Subprocess.run(["sh", "-c", command], in: directory, limit: 60)
      #expect(viewer.hasPlayed, "\(viewer.outputText)\(viewer.error)")
    }

    @Test func `ffmpeg and GStreamer play over RTSP by UDP and TCP`() throws {
      let program = try ServedProgram(Self.options)
      var ffmpeg: [Subprocess] = []
      var gstreamer: [Subprocess] = []
      for transport in ["udp", "tcp"] {
        ffmpeg.append(try program.ffmpeg(program.url(), transport: transport))
        gstreamer.append(try program.gstreamer(program.url(), protocols: transport))
      }
      for process in ffmpeg { try expectDecoded(process) }
      for process in gstreamer { try expectPlayed(process) }
      let result = try program.end()
      #expect(result.status == 0, "\(result.error)")
    }
  }
#endif
