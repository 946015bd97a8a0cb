#if X264
  import Foundation
  import Appliance
  import TestSupport
  import Testing

  /// Optimizations that the program can do without: the stream is the same, and the system is asked otherwise.
  @Suite(.serialized) struct OptimizationTests {
    private static let options = [
      "--control", "none", "--source", "test", "--encoder", "x264", "--preset", "ultra-low-latency",
      // A busy host is no reason for another encoder here.
      "--no-load-adaptation",
    ]
    /// Some systems do not allow it.
    static let canTrace =
      (try? Subprocess.run(["strace", "-o", "/dev/null", "true"], in: TemporaryDirectory()).status) == 0

    @Test(arguments: Optimization.allCases)
    func `ffmpeg decodes every picture without it`(optimization: Optimization) throws {
      let directory = try TemporaryDirectory()
      let reception = try Reception.ofH264(
        Self.options + ["--size", "320x240", "--without", optimization.rawValue], size: (320, 240),
        until: 11, in: directory)
      #expect(reception.receiverLog.isEmpty, "\(reception.receiverLog)")
      let sent = reception.figure("frames", "sent")
      #expect(sent > 10)
      #expect(reception.pictureCount == sent)
    }

    @Test(arguments: [true, false]) func `destinations share a stream or have one each`(isShared: Bool) throws {
      let directory = try TemporaryDirectory()
      let recorders = [try DatagramRecorder(), try DatagramRecorder()]
      let running = try Subprocess(
        [nightjarPath, "stream"] + Self.options + ["--size", "320x240"]
          + recorders.flatMap { ["--to", "rtp://127.0.0.1:\($0.port)"] } + (isShared ? [] : ["--without", "sharing"]),
        in: directory)
      _ = eventually(within: 60) { recorders.allSatisfy { $0.timestampCount > 21 } || !running.isRunning }
      running.send(SIGTERM)
      let program = try running.wait()
      try #require(program.status == 0, "\(program.error)")
      let packets = recorders.map { $0.finish() }
      let sources = packets.map { packets in Set(packets.map { Data($0[8..<12]) }) }
      #expect(sources[0].count == 1 && sources[1].count == 1)
      #expect((sources[0] == sources[1]) == isShared)
      for packets in packets { #expect(try StreamRecording(packets).pictures.count > 20) }
    }

    /// Returns the system calls while a stream of thirty pictures ran, a call a line.
    private static func calls(_ names: String, _ arguments: [String]) throws -> [Substring] {
      let directory = try TemporaryDirectory()
      let (recorder, path) = (try DatagramRecorder(), directory.path("calls"))
      let tracer = try Subprocess(
        ["strace", "-f", "-e", "trace=\(names)", "-o", path, nightjarPath, "stream"] + Self.options + [
          "--size", "1280x720", "--bitrate", "20M", "--to", "rtp://127.0.0.1:\(recorder.port)",
        ] + arguments, in: directory)
      _ = eventually(within: 60) { recorder.timestampCount > 30 || !tracer.isRunning }
      // The program itself: strace would let go of it.
      let children = try KernelFile.text("/proc/\(tracer.identifier)/task/\(tracer.identifier)/children")
      for child in children.split(separator: " ").compactMap({ Int32($0) }) { kill(child, SIGTERM) }
      let program = try tracer.wait()
      try #require(program.status == 0, "\(program.error)")
      return try String(contentsOfFile: path, encoding: .utf8).split(separator: "\n")
    }

    @Test(.enabled(if: canTrace))
    func `without messages of several packets and calls of several messages there are none`()
      throws
    {
      // 0x67 is UDP_SEGMENT.
      let usual = try Self.calls("sendmmsg", [])
      #expect(usual.contains { $0.contains("0x67") })
      let single = try Self.calls("sendmmsg", ["--without", "gso"])
      #expect(!single.contains { $0.contains("0x67") })
      #expect(single.contains { $0.matches(of: /msg_hdr/).count > 1 })
      let each = try Self.calls("sendmmsg", ["--without", "gso,mmsg"])
      #expect(!each.contains { $0.contains("0x67") || $0.matches(of: /msg_hdr/).count > 1 })
      // Not how many: a busy machine has fewer pictures.
      #expect(each.contains { $0.contains("msg_hdr") })
    }

    @Test(.enabled(if: canTrace)) func `without a pool each frame's memory comes and goes`() throws {
      let bytes = (1280 * 720 * 3 / 2 + 4095) / 4096 * 4096
      /// Returns the number of times that memory of the size of a frame is given back.
      func count(_ arguments: [String]) throws -> Int {
        try Self.calls("munmap", arguments).count { call in
          call.firstMatch(of: /munmap\(\w+, (\d+)\)/).flatMap { Int($0.output.1) } == bytes
        }
      }
      #expect(try count([]) < 5)
      #expect(try count(["--without", "pool"]) > 10)
    }

    @Test(.enabled(if: canTrace))
    func `without lent memory each packet is one piece, and no header before bytes of the picture`()
      throws
    {
      func parts(_ arguments: [String]) throws -> (pieces: Int, copies: Int) {
        let calls = try Self.calls("sendmmsg", arguments)
        // Its second part is empty.
        func count(_ words: String) -> Int { calls.reduce(0) { $0 + $1.ranges(of: words).count } }
        return (count("msg_hdr="), count("iov_len=0}"))
      }
      let (usual, copied) = (try parts(["--without", "gso"]), try parts(["--without", "gso,zerocopy"]))
      #expect(usual.copies * 10 < usual.pieces)
      #expect(copied.copies * 2 > copied.pieces)
    }

    @Test(.enabled(if: canTrace)) func `without real-time priority none asks for it`() throws {
      // Allowed or not.
      func asks(_ arguments: [String]) throws -> Int {
        try Self.calls("sched_setscheduler", arguments).count { $0.contains("sched_setscheduler(") }
      }
      #expect(try asks(["--realtime", "on"]) == 2)
      #expect(try asks(["--without", "rtprio"]) == 0)
    }

    /// Returns the slices of a trace with that name, by their frames. Times are in microseconds.
    private static func slices(_ name: String, of trace: [[String: Any]]) -> [Int: [(begin: Double, length: Double)]] {
      var slices: [Int: [(begin: Double, length: Double)]] = [:]
      for event in trace where event["name"] as? String == name {
        guard let frame = (event["args"] as? [String: Any])?["frame"] as? Int, let begin = event["ts"] as? Double,
          let length = event["dur"] as? Double
        else { continue }
        slices[frame, default: []].append((begin, length))
      }
      return slices
    }

    @Test(arguments: [true, false]) func `slices leave one by one or together`(isOneByOne: Bool) throws {
      let directory = try TemporaryDirectory()
      let recorder = try DatagramRecorder()
      let running = try Subprocess(
        [nightjarPath, "stream"] + Self.options + [
          "--size", "1280x720", "--stats-json", directory.path("s.json"), "--trace", directory.path("t.json"),
        ]
          + ["--to", "rtp://127.0.0.1:\(recorder.port)"] + (isOneByOne ? [] : ["--without", "slices"]), in: directory)
      _ = eventually(within: 60) { recorder.timestampCount > 60 || !running.isRunning }
      running.send(SIGTERM)
      let program = try running.wait()
      try #require(program.status == 0, "\(program.error)")
      struct Figures: Decodable {
        struct Stage: Decodable { let p50: Double }
        let latency_ms: [String: Stage]
      }
      let data = try Data(contentsOf: directory.url.appendingPathComponent("s.json"))
      let stages = try JSONDecoder().decode(Figures.self, from: data).latency_ms
      let (first, last) = (try #require(stages["first_packet"]).p50, try #require(stages["total"]).p50)
      // Whole pictures leave in one call.
      #expect(isOneByOne || first > last * 0.8, "\(first), \(last)")
      let text = try Data(contentsOf: URL(fileURLWithPath: directory.path("t.json")))
      let trace = try #require(try JSONSerialization.jsonObject(with: text) as? [[String: Any]])
      let (encoded, sent) = (Self.slices("encode", of: trace), Self.slices("packetize", of: trace))
      // The first part is on its way while the encoder is at work on the rest. Where the thread that sends gets no
      // processor meanwhile, as at times on a busy machine, the parts leave together.
      let early = sent.count { frame in
        guard frame.value.count > 1, let call = encoded[frame.key]?.first else { return false }
        return frame.value.contains { $0.begin < call.begin + call.length * 0.8 }
      }
      #expect(!sent.isEmpty && !encoded.isEmpty)
      #expect(isOneByOne ? early * 4 > sent.count : sent.allSatisfy { $0.value.count == 1 }, "\(early) of \(sent)")
      let tellsFirst = program.log.lines.count { $0.hasPrefix("  to the first packet: p50 ") }
      // Told where it is much sooner, as it mostly is.
      #expect(tellsFirst == (isOneByOne && first < last * 0.9 ? 1 : 0), "\(program.error)")
      let encoder = try #require(program.log.values(of: "encoder").first).components(separatedBy: ", ")
      #expect(encoder.count { $0 == "4 slices" } == 1, "\(program.error)")
    }

    @Test(arguments: [true, false]) func `a second encoder stands by or does not`(standsBy: Bool) throws {
      let directory = try TemporaryDirectory()
      let recorder = try DatagramRecorder()
      let program = try Subprocess(
        [
          nightjarPath, "stream", "--source", "test", "--size", "1280x720", "--encoder", "x264", "--x264-preset",
          "ultrafast", "--no-load-adaptation", "--control", directory.path("control"), "--to",
          "rtp://127.0.0.1:\(recorder.port)",
        ] + (standsBy ? [] : ["--without", "standby"]), in: directory)
      defer { program.send(SIGKILL) }
      // Pictures of before and after: memory that does not change may be that of a machine that is held up.
      func awaitPictures() throws {
        let count = recorder.timestampCount
        try #require(eventually { recorder.timestampCount > count + 10 }, "\(program.errorSoFar)")
      }
      try awaitPictures()
      func megabytes() throws -> Int {
        let status = try KernelFile.text("/proc/\(program.identifier)/status")
        let line = try #require(status.split(separator: "\n").first { $0.hasPrefix("VmRSS") })
        return (Int(line.filter(\.isNumber)) ?? 0) / 1024
      }
      /// Once it has not changed for some seconds: the standby's thread may be held up while others are not.
      func settled() throws -> Int {
        var (last, since) = (try megabytes(), ContinuousClock.now)
        _ = try eventually(within: 60) {
          let now = try megabytes()
          if now != last { (last, since) = (now, .now) }
          return .now - since > .seconds(4)
        }
        return last
      }
      let before = try settled()
      let turned = try Subprocess.run(
        [nightjarPath, "ctl", "rotate", "90", "--socket", directory.path("control")], in: directory)
      try #require(turned.status == 0, "\(turned.error)")
      try awaitPictures()
      // The encoder of the other aspect takes 7 MB more than that of before, which has ended. Both aspects share their frames' memory.
      let grown = try settled() - before
      #expect(standsBy ? grown < 5 : grown > 5, "\(grown) MB more")
    }

    @Test(.enabled(if: canTrace)) func `without punctual threads none asks for it`() throws {
      let usual = try Self.calls("prctl", []).filter { $0.contains("PR_SET_TIMERSLACK") }
      #expect(usual.count >= 3)
      #expect(try !Self.calls("prctl", ["--without", "timerslack"]).contains { $0.contains("PR_SET_TIMERSLACK") })
    }

    @Test func `an unknown optimization is refused, with the list of the known ones`() throws {
      let directory = try TemporaryDirectory()
      for (list, words) in [
        ("pol", "choose from pool, zerocopy, slices,"), ("pool,", "choose from"), ("rtprio", "exclude each other"),
        ("rtprio --without gso", "exclude each other"),
      ] {
        let result = try Subprocess.run(
          [nightjarPath, "stream", "--without"] + list.split(separator: " ").map(String.init) + ["--realtime", "on"],
          in: directory)
        #expect(result.status == 64)
        #expect(result.error.contains(words), "\(result.error)")
      }
    }
  }
#endif
