import Foundation
import TestSupport
import Testing

/// The encoders in the answer of `nightjar devices --json`.
private struct Devices: Decodable {
  struct Mode: Decodable, Equatable {
    let codec: String
    let profile: String
    let entry_point: String
    let rate_controls: [String]
  }
  struct Hardware: Decodable {
    let path: String
    let obstacle: String?
    let modes: [Mode]
  }
  struct Encoders: Decodable { let hardware: [Hardware] }
  let encoders: Encoders
}

/// The program on VA-API hardware that fails: the strict test driver's.
@Suite(.serialized) struct EncoderTests {
  /// The outcome of one run.
  struct Run {
    let statistics: [String: Any]
    let log: String
    let violations: [String]
    let packets: [Data]

    /// The lines that tell of hardware that has failed: the reason, and what encodes until it is tried again.
    var failovers: [(reason: String, end: String)] {
      ProgramLog(log).lines.compactMap { line in
        let parts = line.components(separatedBy: "; ")
        guard parts.count == 2, parts[0].hasPrefix("VA-API") else { return nil }
        return (parts[0], parts[1])
      }
    }

    func figure(_ group: String, _ name: String) -> Int {
      ((statistics[group] as? [String: Any])?[name] as? NSNumber)?.intValue ?? -1
    }
  }

  /// Streams with `arguments` to this test, on a driver with `knobs`.
  ///
  /// - Parameter words: The words at which it is ended at once; else it ends by itself.
  private static func stream(
    _ arguments: [String], knobs: [String: String], until words: String? = nil, in directory: TemporaryDirectory
  ) throws -> Run {
    try #require(StrictVADriver.isBuilt)
    let node = directory.path("node")
    let log = directory.path("violations")
    try Data().write(to: URL(fileURLWithPath: node))
    let recorder = try DatagramRecorder()
    let running = try Subprocess(
      [
        nightjarPath, "stream", "--vaapi-device", node, "--size", "640x360", "--to", "rtp://127.0.0.1:\(recorder.port)",
        "--sdp", directory.path("s.sdp"), "--stats-json", directory.path("s.json"),
      ] + arguments, in: directory,
      environment: StrictVADriver.environment(node: node, log: log, knobs: knobs))
    if let words {
      _ = eventually(within: 90) { running.errorSoFar.contains(words) || !running.isRunning }
      running.send(SIGTERM)
    }
    let program = try running.wait()
    let packets = recorder.finish()
    #expect(program.status == 0, "\(program.error)")
    let statistics = try JSONSerialization.jsonObject(with: Data(contentsOf: directory.url.appending(path: "s.json")))
    return Run(
      statistics: statistics as? [String: Any] ?? [:], log: program.error,
      violations: StrictVADriver.violations(in: log), packets: packets)
  }

  /// More than three seconds for a picture: a machine that is busy with other tests is no hang. One quality level: a picture that
  /// is refused together with another one is sent again, and is no failure.
  private static let patient = ["--hang-limit", "100", "--vaapi-quality", "4"]

  @Test func `hardware alone ends with the reason when it fails`() throws {
    try #require(StrictVADriver.isBuilt)
    let directory = try TemporaryDirectory()
    try Data().write(to: directory.url.appending(path: "node"))
    let program = try Subprocess.run(
      [
        nightjarPath, "stream", "--source", "test", "--encoder", "vaapi", "--vaapi-device", directory.path("node"),
        "--duration", "20s",
        // Without a standby, which could be the one that fails.
        "--control", "none",
      ] + Self.patient, in: directory,
      environment: StrictVADriver.environment(
        node: directory.path("node"), log: directory.path("log"), knobs: ["FAIL_AT": "10"]))
    #expect(program.status == 69, "\(program.error)")
    let failures = program.log.failures
    #expect(failures.count == 1, "\(program.error)")
    #expect(
      failures.allSatisfy { $0.hasPrefix("the encoder has failed and there is no fallback: VA-API: ") },
      "\(program.error)")
  }

  @Test func `a driver that hangs does not hold up the list of devices`() throws {
    try #require(StrictVADriver.isBuilt)
    let directory = try TemporaryDirectory()
    let node = directory.path("node")
    try Data().write(to: directory.url.appending(path: "node"))
    func devices(_ knobs: [String: String]) throws -> Devices.Hardware {
      let result = try Subprocess.run(
        [nightjarPath, "devices", "--json", "--vaapi-device", node], in: directory,
        environment: StrictVADriver.environment(node: node, log: directory.path("log"), knobs: knobs))
      #expect(result.status == 0, "\(result.error)")
      let list = try JSONDecoder().decode(Devices.self, from: result.output).encoders.hardware
      #expect(list.map(\.path) == [node])
      return try #require(list.first)
    }
    func text(_ knobs: [String: String]) throws -> ProgramLog {
      let result = try Subprocess.run(
        [nightjarPath, "devices", "--vaapi-device", node], in: directory,
        environment: StrictVADriver.environment(node: node, log: directory.path("log"), knobs: knobs))
      #expect(result.status == 0, "\(result.error)")
      return result.listing
    }
    let hungText = try text(["HANG_IN": "init", "HANG_AT": "1", "HANG_SECONDS": "600"])
    #expect(hungText.count(of: "  unusable VA-API (\(node)) did not answer for 5000 ms") == 1, "\(hungText)")
    let listedText = try text([:])
    #expect(listedText.lines.count { $0.hasPrefix("  high  EncSlice  CBR VBR CQP") } == 1, "\(listedText)")
    #expect(listedText.lines.count { $0.hasPrefix("  HEVC main  EncSlice  CBR VBR CQP") } == 1, "\(listedText)")
    let hung = try devices(["HANG_IN": "init", "HANG_AT": "1", "HANG_SECONDS": "600"])
    #expect(hung.obstacle == "VA-API (\(node)) did not answer for 5000 ms" && hung.modes == [])
    let listed = try devices([:])
    let high = Devices.Mode(
      codec: "h264", profile: "high", entry_point: "EncSlice", rate_controls: ["CBR", "VBR", "CQP"])
    #expect(listed.obstacle == nil && listed.modes.count { $0 == high } == 1, "\(listed)")
  }

  #if X264
    private static let takeover = " takes over, and nightjar tries the hardware again in 1 s"

    private static func isTakeover(_ text: String) -> Bool { text.hasPrefix("x264") && text.hasSuffix(takeover) }

    @Test(arguments: ["error", "lost"])
    func `hardware that fails in mid-stream costs at most one picture`(failure: String) throws {
      let directory = try TemporaryDirectory()
      // The pictures of all encoders count, and the thirtieth may be of the one that a busy machine warms up late.
      let run = try Self.stream(
        ["--source", "test"] + Self.patient,
        knobs: ["FAIL_AT": "30", "FAIL": failure, "FAIL_COUNT": "-1", "LOST_REOPENS": "0"],
        until: Self.takeover, in: directory)
      #expect(run.figure("encoder", "failovers") >= 1)
      let counts = try #require(
        (run.statistics["frames"] as? [String: Any])?["dropped_by_cause"] as? [String: Int])
      // Those that a busy machine has missed were not captured.
      let dropped = run.figure("frames", "dropped") - (counts["driver"] ?? 0)
      let missed = dropped + run.figure("frames", "thinned")
      #expect(run.figure("frames", "encoded") + missed == run.figure("frames", "captured"))
      #expect(try StreamRecording(run.packets).pictures.count == run.figure("frames", "sent"))
      #expect(counts["encoder_error"] == 0)
      #expect(run.violations.isEmpty, "\(run.violations)")
      let failover = try #require(run.failovers.first, "\(run.log)")
      #expect(Self.isTakeover(failover.end), "\(run.log)")
    }

    @Test func `hardware that hangs in mid-stream is left behind`() throws {
      let directory = try TemporaryDirectory()
      // Without a standby: the driver counts the pictures of all encoders, and each one from the thirtieth on hangs.
      let run = try Self.stream(
        ["--source", "test", "--hang-limit", "100", "--control", "none"],
        knobs: ["HANG_AT": "30", "HANG_IN": "sync", "HANG_SECONDS": "600"], until: Self.takeover, in: directory)
      #expect(run.figure("encoder", "hangs") == 1)
      #expect(run.figure("encoder", "recoveries") == 0)
      #expect(try StreamRecording(run.packets).pictures.count == run.figure("frames", "sent"))
      let failover = try #require(run.failovers.first, "\(run.log)")
      #expect(failover.reason.hasPrefix("VA-API (\(directory.path("node"))) did not answer for "), "\(run.log)")
      #expect(Self.isTakeover(failover.end), "\(run.log)")
    }

    @Test func `hardware that hung is taken back on another connection, while the first one hangs still`() throws {
      let driver = try HeldDriver()
      let recorder = try DatagramRecorder()
      let program = try driver.stream(
        ["--to", "rtp://127.0.0.1:\(recorder.port)", "--keyframe-interval", "500ms", "--hang-limit", "100"])
      #expect(eventually { recorder.count > 30 }, "\(program.errorSoFar)")
      // One call hangs for good, those after it do not.
      try driver.order("hang=sync\nhang_seconds=600\nhang_frames=1\n")
      func lines(_ end: String) -> Int { program.log.lines.count { $0.hasPrefix("VA-API") && $0.hasSuffix(end) } }
      #expect(eventually(within: 60) { lines(Self.takeover) == 1 }, "\(program.errorSoFar)")
      #expect(eventually(within: 60) { lines(" encodes again") == 1 }, "\(program.errorSoFar)")
      let figures = try driver.end(program)
      #expect(figures["hangs"] == 1 && figures["failovers"] == 1 && figures["recoveries"] == 1, "\(figures)")
      #expect(driver.violations.isEmpty, "\(driver.violations)")
      #expect(!(try StreamRecording(recorder.finish()).pictures.isEmpty))
    }

    @Test func `hardware that is held up with the whole program is not given up`() throws {
      let driver = try HeldDriver()
      let recorder = try DatagramRecorder()
      let program = try driver.stream(["--to", "rtp://127.0.0.1:\(recorder.port)", "--hang-limit", "100"])
      #expect(eventually { recorder.count > 30 }, "\(program.errorSoFar)")
      // A seventh of what a picture may take, since a busy machine adds to it: it is at work whenever the program is stopped.
      try driver.order("slow_ms=500\n")
      let first = recorder.timestampCount
      #expect(eventually { recorder.timestampCount > first + 1 }, "\(program.errorSoFar)")
      for _ in 0..<3 {
        program.send(SIGSTOP)
        // Longer than a picture may take.
        usleep(3_600_000)
        program.send(SIGCONT)
        let before = recorder.timestampCount
        #expect(eventually { recorder.timestampCount > before }, "\(program.errorSoFar)")
      }
      let figures = try driver.end(program)
      #expect(figures["hangs"] == 0 && figures["failovers"] == 0, "\(program.errorSoFar)")
    }

    @Test func `hardware that wakes up slowly after a rest is not given up`() throws {
      let driver = try HeldDriver()
      let port = try TCPPort.free()
      let program = try driver.stream(["--rtsp", "127.0.0.1:\(port)", "--hang-limit", "30"])
      #expect(eventually { !program.log.values(of: "rtsp").isEmpty }, "\(program.errorSoFar)")
      // Nobody watches: it rests.
      usleep(1_500_000)
      // Longer than a picture may take otherwise, and half as long as the first one may after a rest.
      try driver.order("hang=sync\nhang_seconds=1.5\nhang_frames=1\n")
      let played = try Subprocess.run(
        [
          "ffmpeg", "-nostdin", "-v", "error", "-rtsp_transport", "tcp", "-i", "rtsp://127.0.0.1:\(port)/camera",
          "-frames:v", "1", "-f", "null", "-",
        ], in: driver.directory, limit: 60)
      #expect(played.status == 0, "\(played.error)")
      let figures = try driver.end(program)
      #expect(figures["hangs"] == 0 && figures["failovers"] == 0, "\(program.errorSoFar)")
    }

    @Test func `hardware that has recovered is taken back`() throws {
      let directory = try TemporaryDirectory()
      // The standby, which is made beside it, may take one of the failures.
      let run = try Self.stream(
        ["--source", "test", "--keyframe-interval", "500ms"] + Self.patient,
        knobs: ["FAIL_AT": "20", "FAIL_COUNT": "3"],
        until: "encodes again", in: directory)
      #expect(run.figure("encoder", "recoveries") == 1)
      #expect(try StreamRecording(run.packets).pictures.count == run.figure("frames", "sent"))
      let encoder = try #require(run.statistics["encoder"] as? [String: Any])
      let name = try #require(encoder["name"] as? String)
      #expect(name.hasPrefix("VA-API"))
      #expect(ProgramLog(run.log).count(of: "\(name) encodes again") == 1, "\(run.log)")
    }

    @Test func `without hardware it is said why x264 was taken`() throws {
      let directory = try TemporaryDirectory()
      // What stands in brackets behind the encoder and its rate.
      func explanation(_ node: String, _ knobs: [String: String] = [:]) throws -> String? {
        let program = try Subprocess.run(
          [nightjarPath, "stream", "--source", "test", "--duration", "300ms", "--vaapi-device", node], in: directory,
          environment: StrictVADriver.environment(
            node: directory.path("node"), log: directory.path("log"), knobs: knobs))
        #expect(program.status == 0, "\(program.error)")
        let encoder = try #require(program.log.values(of: "encoder").first)
        return encoder.components(separatedBy: " s (").last.map { String($0.dropLast()) }
      }
      try Data().write(to: directory.url.appending(path: "node"))
      let (node, none) = (directory.path("node"), directory.path("none"))
      #expect(
        try explanation("/dev/null")
          == "no VA-API: /dev/null is not a render node: choose one of /dev/dri/renderD128 to renderD191")
      #expect(
        try explanation(none) == "no VA-API: no render node \(none): is there a GPU, and its kernel driver loaded?")
      #expect(
        try explanation(node, ["ENTRYPOINT": "none"])
          == "no VA-API: nightjar strict test driver (\(node)) offers no H.264 encoder")
      #expect(try explanation(node) == "x264 stands by")
    }

    /// The figures of the specification: a hundred times out of a hundred. The first pictures are the preparation's. The
    /// driver counts the pictures of all encoders, so there is only one.
    @Test(.enabled(if: runsLong), arguments: 0..<100)
    func `a failure at any picture costs no more than it may`(round: Int) throws {
      let directory = try TemporaryDirectory()
      let hangs = round.isMultiple(of: 2)
      let picture = "\(4 + round * 7 % 41)"
      let knobs =
        hangs
        ? ["HANG_AT": picture, "HANG_IN": "sync", "HANG_SECONDS": "600"]
        : ["FAIL_AT": picture, "FAIL": round % 4 == 1 ? "error" : "lost", "LOST_REOPENS": "0"]
      // A hang is noticed after three frame intervals, as by default; a busy machine is none where only errors count.
      let run = try Self.stream(
        ["--source", "test", "--duration", "2s", "--control", "none", "--no-load-adaptation"]
          + (hangs ? [] : Self.patient), knobs: knobs, in: directory)
      #expect(run.figure("encoder", "failovers") >= 1, "picture \(picture): \(run.log)")
      #expect(run.figure("encoder", "hangs") == (hangs ? 1 : 0), "picture \(picture): \(run.log)")
      let missing = run.figure("frames", "captured") - run.figure("frames", "sent")
      #expect(missing <= (hangs ? 4 : 1), "picture \(picture): \(run.log)")
      #expect(try StreamRecording(run.packets).pictures.count == run.figure("frames", "sent"))
    }
  #endif
}
