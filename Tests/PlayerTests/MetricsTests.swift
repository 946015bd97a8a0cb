#if X264
  import Serving
  import Foundation
  import TestSupport
  import Testing

  /// Figures of the running program, judged by Prometheus's own tool.
  @Suite(.serialized) struct MetricsTests {
    /// A thermal zone of files.
    private static func thermalZone(in directory: TemporaryDirectory) throws {
      let zone = "\(directory.url.path)/class/thermal/thermal_zone0"
      try FileManager.default.createDirectory(atPath: zone, withIntermediateDirectories: true)
      for (name, text) in [
        "type": "cpu-thermal", "temp": "45500", "trip_point_0_type": "passive", "trip_point_0_temp": "80000",
      ] {
        try Data("\(text)\n".utf8).write(to: URL(fileURLWithPath: "\(zone)/\(name)"))
      }
    }

    @Test func `with a viewer by RTSP promtool finds nothing, and all that is promised is there`() throws {
      let sysfs = try TemporaryDirectory()
      try Self.thermalZone(in: sysfs)
      let program = try ServedProgram(["--sysfs", sysfs.url.path, "--encoder", "x264", "--audio", "test"])
      let socket = program.directory.path("control")
      let idle = try Scrape(socket, in: program.directory)
      #expect(idle.samples[#"nightjar_viewers{camera="camera",kind="rtsp"}"#] == 0)
      let viewer = try program.ffmpeg(program.url(), transport: "udp", frames: 100_000)
      defer { viewer.send(SIGKILL) }
      // What a viewer has reported, and what the sensor has told.
      func scrape() throws -> Scrape { try Scrape(socket, in: program.directory) }
      var page = try scrape()
      let hasReported = try eventually(within: 90) {
        page = try scrape()
        let samples = page.samples
        return samples[#"nightjar_viewer_loss_ratio{camera="camera",viewer="0"}"#] != nil
          && samples[#"nightjar_viewer_round_trip_seconds{camera="camera",viewer="0"}"#] != nil
          && samples[#"nightjar_viewer_queueing_seconds{camera="camera",viewer="0"}"#] != nil
          && samples[#"nightjar_temperature_celsius{zone="cpu-thermal"}"#] != nil
      }
      #expect(hasReported, "\(page.text)")
      let file = program.directory.path("metrics")
      try Data(page.text.utf8).write(to: URL(fileURLWithPath: file))
      let judged = try Subprocess.run(
        ["sh", "-c", "exec promtool check metrics < \"$0\"", file], in: program.directory)
      let words = judged.outputText + judged.error
      #expect(judged.status == 0 && words.isEmpty, "\(words)")

      // A network without a limit has no figure, and neither has a viewer of the full pictures. Software has no quality level.
      for metric in Metric.allCases where ![.viewerBandwidth, .viewerSmallHeight, .qualityLevel].contains(metric) {
        let type = "# TYPE \(metric.rawValue) \(metric.kind.rawValue)"
        #expect(page.text.split(separator: "\n").count { $0 == type } == 1, "\(metric.rawValue)")
      }
      expectConsistent(page)
      #expect(page.samples[#"nightjar_viewers{camera="camera",kind="rtsp"}"#] == 1)
      #expect(page.samples[#"nightjar_temperature_celsius{zone="cpu-thermal"}"#] == 45.5)
      #expect(page["nightjar_sound_present"] == 1 && page["nightjar_sound_muted"] == 0)
      #expect(page.samples[#"nightjar_thermal_state{state="nominal"}"#] == 1)
      #expect(page.samples[#"nightjar_camera_state{camera="camera",state="streaming"}"#] == 1)
      #expect(page.samples.keys.contains { $0.hasPrefix(#"nightjar_encoder_info{camera="camera",encoder="x264"#) })
      let start = page.samples["process_start_time_seconds"] ?? 0
      #expect(abs(start - Date().timeIntervalSince1970) < 600, "\(start)")
      #expect(page.samples["process_resident_memory_bytes"] ?? 0 > 1e6)
      #expect(page.samples["process_open_fds"] ?? 0 > 5)
      // The kernel counts the same.
      let status = try KernelFile.text("/proc/\(program.process.identifier)/limits")
      let limit = status.split(separator: "\n").first { $0.hasPrefix("Max open files") }?.split(separator: " ")[3]
      #expect(page.samples["process_max_fds"] == limit.flatMap { Double($0) })
      #expect(try program.end().status == 0)
    }

    /// Each histogram's buckets rise up to its count, and its frames are those that were counted.
    private func expectConsistent(_ page: Scrape) {
      var buckets: [String: [(limit: Double, count: Double)]] = [:]
      for (key, number) in page.samples {
        guard let match = key.firstMatch(of: /^(.*)_bucket\{(.*),le="(.*)"\}$/) else { continue }
        let limit = match.3 == "+Inf" ? Double.infinity : Double(match.3) ?? .nan
        buckets["\(match.1) \(match.2)", default: []].append((limit, number))
      }
      // Seven stages, the whole way, and the way to the first packet.
      #expect(buckets.count == 9)
      for (key, values) in buckets {
        let sorted = values.sorted { $0.limit < $1.limit }
        #expect(zip(sorted, sorted.dropFirst()).allSatisfy { $0.count <= $1.count }, "\(key)")
        let words = key.split(separator: " ")
        #expect(sorted.last?.count == page.samples["\(words[0])_count{\(words[1])}"], "\(key)")
      }
      func frames(_ stage: String) -> Double {
        page.samples[#"nightjar_stage_duration_seconds_count{camera="camera",stage="\#(stage)"}"#] ?? -1
      }
      #expect(frames("capture") == page["nightjar_frames_captured_total"])
      // Every picture of the synthetic camera is painted.
      #expect(frames("convert") == page["nightjar_frames_captured_total"])
      #expect(frames("packetize") == frames("send"))
      #expect(frames("send") == page["nightjar_frames_sent_total"])
      #expect(frames("packetize") > 10)
      // All stages together are the way from camera to wire: of the same frames, but for those on their way.
      let total = page["nightjar_capture_to_wire_seconds_sum"] ?? 0
      func seconds(_ stage: String) -> Double {
        page.samples[#"nightjar_stage_duration_seconds_sum{camera="camera",stage="\#(stage)"}"#] ?? -1
      }
      #expect(seconds("packetize") > 0 && seconds("convert") > 0)
      let first = page["nightjar_capture_to_first_packet_seconds_sum"] ?? 0
      #expect(first > 0 && first <= total * 1.05 + 0.5)
      #expect(seconds("encode") + seconds("packetize") + seconds("send") <= total * 1.05 + 0.5, "\(page.text)")
    }

    @Test func `no figure falls when the pipeline is begun anew or a viewer leaves`() throws {
      let recorder = try DatagramRecorder()
      let other = try UDPPort.free()
      let head = "source = 'test'\nencoder = 'x264'\nto = ['rtp://127.0.0.1:\(recorder.port)'"
      let program = try ConfiguredProgram(head + ", 'rtp://127.0.0.1:\(other)']\nsize = '320x240'\n")
      let socket = program.directory.path("control")
      var last = try Scrape(socket, in: program.directory)
      func expectRisen(_ what: String) throws {
        let next = try Scrape(socket, in: program.directory)
        let counters = next.counters
        #expect(counters.count > 100)
        for (name, number) in last.counters { #expect(counters[name] ?? -1 >= number, "\(what): \(name)") }
        last = next
      }
      let begun = last["nightjar_packets_sent_total"] ?? 0
      let count = recorder.count
      #expect(eventually { recorder.count > count + 60 })
      try expectRisen("on its way")
      #expect(last["nightjar_packets_sent_total"] ?? 0 > begun)
      // A destination goes, and what it got stays counted.
      try program.write(head + "]\nsize = '320x240'\n")
      #expect(try program.reload() == ["camera": "changed"])
      try expectRisen("a destination less")
      for (number, size) in ["640x480", "320x240", "480x360"].enumerated() {
        try program.write(head + "]\nsize = '\(size)'\n")
        #expect(try program.reload() == ["camera": "restarted"])
        let count = recorder.count
        #expect(eventually { recorder.count > count + 20 }, "\(program.process.errorSoFar)")
        try expectRisen(size)
        #expect(last["nightjar_camera_restarts_total"] == Double(number + 1))
        #expect(last.samples["nightjar_reloads_total"] == Double(number + 2))
      }
      #expect(try Health(socket, in: program.directory)?.status == 200)
      try program.end()
      _ = recorder.finish()
    }

    @Test func `sound has figures where there is sound, and they go on when the pipeline is begun anew`() throws {
      let recorder = try DatagramRecorder()
      func text(_ sound: String, size: String = "320x240") -> String {
        """
        source = 'test'
        encoder = 'x264'
        size = '\(size)'
        to = 'rtp://127.0.0.1:\(recorder.port)'
        audio = '\(sound)'

        """
      }
      let program = try ConfiguredProgram(text("hw:CARD=Nowhere"))
      func scrape() throws -> Scrape { try Scrape(program.directory.path("control"), in: program.directory) }
      func silence() throws -> Double { try scrape()["nightjar_sound_silence_seconds_total"] ?? 0 }
      #expect(try eventually { try silence() > 0.5 })
      let absent = try scrape()
      #expect(absent["nightjar_sound_present"] == 0 && absent["nightjar_sound_rms_dbfs"] == -100)
      try program.write(text("hw:CARD=Nowhere", size: "480x360"))
      #expect(try program.reload() == ["camera": "restarted"])
      let before = absent["nightjar_sound_silence_seconds_total"] ?? .infinity
      #expect(try silence() >= before)
      // Only a camera with sound has them.
      try program.write(text("none"))
      #expect(try program.reload() == ["camera": "restarted"])
      #expect(try !scrape().text.contains("nightjar_sound"))
      // The tone beeps for a tenth of each second.
      try program.write(text("test"))
      #expect(try program.reload() == ["camera": "restarted"])
      #expect(try silence() >= before)
      #expect(try eventually { try scrape()["nightjar_sound_present"] == 1 })
      #expect(try eventually(within: 120) { try scrape()["nightjar_sound_rms_dbfs"] ?? -100 > -30 })
      #expect(try eventually(within: 120) { try scrape()["nightjar_sound_rms_dbfs"] ?? 0 < -90 })
      #expect(try program.answer("audio", "mute")["muted"] as? Bool == true)
      #expect(try eventually { try scrape()["nightjar_sound_muted"] == 1 })
      // What is clipped: the tone is a quarter of full scale, and 30 dB are more than 30 times that.
      #expect(try program.answer("audio", "gain", "30")["gain_db"] as? Double == 30)
      #expect(try eventually { try scrape()["nightjar_sound_clipped_samples_total"] ?? 0 > 0 })
      #expect(try eventually { try scrape()["nightjar_sound_peak_dbfs"] ?? -100 > -0.01 })
      try program.end()
      _ = recorder.finish()
    }

    @Test func `health reports an unwatched, a missing and a waiting camera`() throws {
      let clip = "/nonexistent/clip.y4m"
      let program = try ConfiguredProgram(
        """
        rtsp = '127.0.0.1:\(try TCPPort.free())'
        [[camera]]
        name = "nursery"
        source = "test"
        size = "320x240"
        [[camera]]
        name = "garden"
        source = "file:\(clip)"
        [[camera]]
        name = "attic"
        source = "/dev/v4l/by-id/usb-nothing-of-that-name"
        """, until: "rtsp  ")
      let socket = program.directory.path("control")
      func state(_ camera: String) throws -> String {
        let answer = try #require(try Health(socket, path: "/cameras/\(camera)/healthz", in: program.directory))
        #expect((answer.document["healthy"] as? Bool == true) == (answer.status == 200), "\(answer)")
        #expect((answer.document["reason"] == nil) == (answer.status == 200), "\(answer)")
        return answer.summary
      }
      #expect(try eventually { try state("nursery") == "200 idle" })
      #expect(try eventually { try state("garden") == "503 absent" })
      #expect(try eventually { try state("attic") == "503 waiting" })
      let all = try #require(try Health(socket, in: program.directory))
      #expect(all.status == 503)
      let cameras = all.document["cameras"] as? [[String: Any]] ?? []
      #expect(cameras.map { $0["name"] as? String } == ["nursery", "garden", "attic"])
      // As figures too.
      let page = try Scrape(socket, in: program.directory)
      #expect(page.samples[#"nightjar_camera_healthy{camera="nursery"}"#] == 1)
      #expect(page.samples[#"nightjar_camera_healthy{camera="attic"}"#] == 0)
      #expect(page.samples[#"nightjar_camera_state{camera="attic",state="waiting"}"#] == 1)
      #expect(page.samples[#"nightjar_camera_state{camera="attic",state="idle"}"#] == 0)
      try program.end()
    }

    @Test func `a stage that stands still is told, with no systemd to watch it`() throws {
      let directory = try TemporaryDirectory()
      let (clip, pipe) = (directory.path("clip.y4m"), directory.path("pipe"))
      let made = try Subprocess.run(
        [
          "ffmpeg", "-v", "error", "-f", "lavfi", "-i", "testsrc=size=320x240:rate=30:duration=2", "-pix_fmt",
          "yuv420p", clip,
        ], in: directory)
      #expect(made.status == 0 && mkfifo(pipe, 0o600) == 0, "\(made.error)")
      // What delivers two seconds, and then nothing, without an end.
      let writer = try Subprocess(
        ["sh", "-c", "exec 3> \"$1\"; cat \"$0\" >&3; exec sleep 300", clip, pipe], in: directory)
      defer { writer.send(SIGKILL) }
      let port = try UDPPort.free()
      let program = try ConfiguredProgram(
        "source = 'file:\(pipe)'\nloop = 1\nencoder = 'x264'\nto = 'rtp://127.0.0.1:\(port)'\n")
      let socket = program.directory.path("control")
      func summary() throws -> String? {
        try Health(socket, path: "/cameras/camera/healthz", in: program.directory)?.summary
      }
      // The first picture may come after the line that it streams.
      #expect(try eventually { try summary() == "200 streaming" })
      let isTold = try eventually(within: 90) { try summary() == "503 stuck" }
      let health = try #require(try Health(socket, path: "/cameras/camera/healthz", in: program.directory))
      let reason = "capture stands still: nothing has moved for "
      #expect(isTold && (health.document["reason"] as? String)?.hasPrefix(reason) == true, "\(health)")
      try program.end()
    }

    @Test func `wrong passwords are counted, and stay so when another server takes the place`() throws {
      let users = try TemporaryDirectory()
      let file = users.path("users")
      let added = try Subprocess.run(
        ["sh", "-c", "echo 'looking glass' | \"$0\" user add anna --users \"$1\"", nightjarPath, file], in: users)
      #expect(added.status == 0, "\(added.error)")
      func text(_ port: Int) -> String {
        "source = 'test'\nsize = '320x240'\nrtsp = '127.0.0.1:\(port)'\nusers = '\(file)'\n"
      }
      let port = try TCPPort.free()
      let program = try ConfiguredProgram(text(port), until: "rtsp  ")
      let refused = try Subprocess.run(
        [
          "ffmpeg", "-nostdin", "-v", "error", "-rtsp_transport", "tcp", "-i",
          "rtsp://anna:wrong@127.0.0.1:\(port)/camera", "-f", "null", "-",
        ], in: users, limit: 90)
      #expect(refused.status != 0)
      let failed = #"nightjar_failed_logins_total{server="rtsp"}"#
      func scrape() throws -> [String: Double] {
        try Scrape(program.directory.path("control"), in: program.directory).samples
      }
      #expect(try eventually { try scrape()[failed] ?? 0 >= 1 })
      let before = try scrape()
      let other = try TCPPort.free()
      try program.write(text(other))
      #expect(try program.answer("reload")["server"] as? [String] == ["RTSP restarted"])
      // The new server has been looked at once its requests are counted too. They are more than the former server may
      // have had after `before`.
      let client = try RTSPClient(port: other)
      for _ in 0..<10 { #expect(try client.request("OPTIONS").status == 200) }
      let requests = "nightjar_rtsp_requests_total"
      let isLookedAt = try eventually { try scrape()[requests] ?? 0 >= (before[requests] ?? 0) + 10 }
      let after = try scrape()
      #expect(isLookedAt && after[failed] == before[failed], "\(before) \(after)")
      try program.end()
    }

    @Test func `fifty scrapes a second delay no frame, and a flood makes ten pages a second`() throws {
      let recorder = try DatagramRecorder()
      let program = try ConfiguredProgram(
        "source = 'test'\nencoder = 'x264'\nsize = '320x240'\nto = 'rtp://127.0.0.1:\(recorder.port)'\n")
      let socket = program.directory.path("control")
      let latency = "nightjar_capture_to_wire_seconds"
      var quiet: [Double: Double] = [:]
      var scraped: [Double: Double] = [:]
      for _ in 0..<3 {
        let begin = try Scrape(socket, in: program.directory)
        let first = recorder.timestampCount
        try #require(eventually { recorder.timestampCount > first + 44 }, "\(program.process.errorSoFar)")
        let middle = try Scrape(socket, in: program.directory)
        let second = recorder.timestampCount
        // As many frames, where a busy machine has them later.
        let hasFrames = try eventually {
          let scrapes = try Subprocess.run(
            [
              "curl", "-sS", "--rate", "50/s", "--unix-socket", socket, "-o", "/dev/null",
              "http://localhost/metrics?[1-75]",
            ], in: program.directory)
          #expect(scrapes.status == 0, "\(scrapes.error)")
          return recorder.timestampCount > second + 30
        }
        try #require(hasFrames, "\(program.process.errorSoFar)")
        let end = try Scrape(socket, in: program.directory)
        quiet.merge(middle.buckets(of: latency, since: begin), uniquingKeysWith: +)
        scraped.merge(end.buckets(of: latency, since: middle), uniquingKeysWith: +)
      }
      #expect(quiet[.infinity] ?? 0 > 30 && scraped[.infinity] ?? 0 > 30, "\(quiet) \(scraped)")
      // A scrape that held a stage up would cost its own time: ten frames of thirty, as ten pages a second are made.
      // A machine that is busy otherwise costs both, and one that is held up costs few frames more.
      let (without, with) = (Scrape.limit(of: 0.8, in: quiet), Scrape.limit(of: 0.8, in: scraped))
      #expect(with <= without * 10 + 0.02, "\(quiet) \(scraped)")

      // As fast as it goes: what is answered is one of few pages.
      let begin = Date()
      let flood = try Subprocess.run(
        [
          "curl", "-sS", "--unix-socket", socket, "-o", program.directory.path("page-#1"),
          "http://localhost/metrics?[1-2000]",
        ], in: program.directory)
      let seconds = Date().timeIntervalSince(begin)
      #expect(flood.status == 0, "\(flood.error)")
      let pages = try (1...2000).map {
        try Data(contentsOf: URL(fileURLWithPath: program.directory.path("page-\($0)")))
      }
      #expect(Set(pages).count <= Int(seconds * 10) + 2, "\(Set(pages).count) pages in \(seconds) s")
      #expect(pages.allSatisfy { $0.count > 1000 })
      try program.end()
      _ = recorder.finish()
    }
  }
#endif
