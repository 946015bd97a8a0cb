import Foundation
import TestSupport
import Testing

/// The program on a machine at its limits, as its viewers see it.
@Suite(.serialized) struct AdaptationTests {
  private struct Stream {
    let directory: TemporaryDirectory
    let program: Subprocess

    /// - Parameter knobs: The settings of the tests' VA-API driver, without their prefix; nil for a stream without hardware.
    init(_ arguments: [String], knobs: [String: String]? = nil) throws {
      directory = try TemporaryDirectory()
      let zone = "\(directory.url.path)/class/thermal/thermal_zone0"
      try FileManager.default.createDirectory(atPath: zone, withIntermediateDirectories: true)
      for (name, text) in [
        "type": "cpu-thermal", "temp": "45000", "trip_point_0_type": "passive", "trip_point_0_temp": "80000",
        "trip_point_1_type": "critical", "trip_point_1_temp": "100000",
      ] {
        try Data("\(text)\n".utf8).write(to: URL(fileURLWithPath: "\(zone)/\(name)"))
      }
      let hardware = knobs == nil ? [] : ["--vaapi-device", directory.path("node"), "--hang-limit", "100"]
      let environment = try Self.environment(knobs, in: directory)
      program = try Subprocess(
        [
          nightjarPath, "stream", "--source", "test", "--sysfs", directory.url.path, "--control",
          directory.path("control"), "--stats-json", directory.path("s.json"),
        ] + arguments + hardware, in: directory, environment: environment)
      try #require(try eventually { try status() != nil }, "\(program.errorSoFar)")
    }

    private static func environment(
      _ knobs: [String: String]?, in directory: TemporaryDirectory
    ) throws -> [String: String] {
      guard let knobs else { return [:] }
      try #require(StrictVADriver.isBuilt)
      let node = directory.path("node")
      try Data().write(to: URL(fileURLWithPath: node))
      return StrictVADriver.environment(node: node, log: directory.path("driver.log"), knobs: knobs)
    }

    /// The complaints of the tests' VA-API driver, and the sums of its contexts.
    var driver: (violations: [String], summaries: [String]) {
      let log = directory.path("driver.log")
      return (StrictVADriver.violations(in: log), StrictVADriver.summaries(in: log))
    }

    /// The choice of the preset or of the quality level; empty where neither is chosen.
    func quality() throws -> [String: Any] { try status()?["quality"] as? [String: Any] ?? [:] }

    func heat(_ temperature: String) throws {
      try Data("\(temperature)\n".utf8)
        .write(to: URL(fileURLWithPath: directory.path("class/thermal/thermal_zone0/temp")))
    }

    func control(_ arguments: String...) throws -> Subprocess.Result {
      try Subprocess.run(
        [nightjarPath, "ctl"] + arguments + ["--socket", directory.path("control")], in: directory)
    }

    func status() throws -> [String: Any]? {
      let result = try control("status", "--json")
      let answer = try? JSONSerialization.jsonObject(with: result.output) as? [String: Any]
      return (answer?["cameras"] as? [[String: Any]])?.first
    }

    /// The present reductions.
    func adaptation() throws -> [String: Any] { try status()?["adaptation"] as? [String: Any] ?? [:] }

    /// Waits until three more pictures have left, the last of which at least is of after the call.
    func waitForPictures() throws {
      func sent() throws -> Int { (try status()?["frames"] as? [String: Any])?["sent"] as? Int ?? 0 }
      let before = try sent()
      try #require(try eventually(within: 90) { try sent() >= before + 3 }, "\(program.errorSoFar)")
    }

    /// The bitrate that the encoder is told to take.
    func bitrate() throws -> Int? { (try status()?["encoder"] as? [String: Any])?["bitrate"] as? Int }

    func wait(for state: String) throws {
      let hasCome = try eventually(within: 90) { try adaptation()["thermal_state"] as? String == state }
      try #require(hasCome, "\(program.errorSoFar)")
    }

    func end() throws -> [String: Any] {
      program.send(SIGTERM)
      let result = try program.wait()
      #expect(result.status == 0, "\(result.error)")
      let figures = try JSONSerialization.jsonObject(with: Data(contentsOf: directory.url.appending(path: "s.json")))
      return try #require(figures as? [String: Any])
    }
  }

  @Test func `a hot machine sends less, smaller and rarer pictures, in one stream, and all of it once it has cooled`()
    throws
  {
    let recorder = try DatagramRecorder()
    let stream = try Stream(
      ["--size", "1600x900", "--bitrate", "2M", "--no-load-adaptation", "--to", "rtp://127.0.0.1:\(recorder.port)"])
    #expect(try stream.adaptation()["bitrate_share"] as? Double == 1)
    try stream.waitForPictures()
    try stream.heat("82000")
    try stream.wait(for: "serious")
    #expect(try eventually { try stream.bitrate() == 1_400_000 }, "\(stream.program.errorSoFar)")
    try stream.heat("96000")
    try stream.wait(for: "critical")
    // A bitrate that is asked for meanwhile is reduced too.
    #expect(try stream.control("bitrate", "1M").status == 0)
    let isReduced = try eventually {
      try stream.bitrate() == 700_000 && stream.adaptation()["maximum_fps"] as? Double == 25
    }
    #expect(isReduced, "\(stream.program.errorSoFar)")
    // The encoder of each size needs its time, and what comes meanwhile would leave the size out.
    func awaitSize(_ size: String) throws {
      try #require(eventually { recorder.sizes.contains(size) }, "\(size): \(stream.program.errorSoFar)")
    }
    try awaitSize("1280x720")
    #expect(try stream.control("rotate", "90").status == 0)
    let critical = try #require(try stream.status())
    #expect((critical["encoder"] as? [String: Any])?["bitrate"] as? Int == 700_000)
    #expect((critical["adaptation"] as? [String: Any])?["maximum_fps"] as? Double == 25)
    try awaitSize("720x1280")
    try stream.heat("nonsense")
    usleep(2_500_000)
    #expect(try stream.adaptation()["maximum_size"] as? String == "1280x720")
    try stream.waitForPictures()
    try stream.heat("45000")
    try stream.wait(for: "nominal")
    #expect(try eventually { try stream.bitrate() == 1_000_000 }, "\(stream.program.errorSoFar)")
    try awaitSize("900x1600")
    let cool = try #require(try stream.status())
    #expect((cool["encoder"] as? [String: Any])?["bitrate"] as? Int == 1_000_000)
    // The log is written once a second, after the fact.
    let cooled = "the host has cooled: cpu-thermal has 45 °C: now as configured"
    #expect(eventually { stream.program.log.count(of: cooled) == 1 }, "\(stream.program.errorSoFar)")
    #expect(
      stream.program.log.warnings.filter { $0.hasPrefix("the host is hot: ") } == [
        "the host is hot: cpu-thermal has 82 °C: now 70 % of the bitrate",
        "the host is hot: cpu-thermal has 96 °C: now 25.0 fps at most, 1280x720 at most, 70 % of the bitrate",
      ])
    let figures = try stream.end()
    let recording = try StreamRecording(recorder.finish())
    #expect(recording.sizes == ["1600x900", "1280x720", "720x1280", "900x1600"])
    let frames = try #require(figures["frames"] as? [String: Any])
    let drops = try #require(frames["dropped_by_cause"] as? [String: Int])
    #expect(try #require(frames["thinned"] as? Int) > 0)
    #expect(drops["encoder_error"] == 0)
    #expect(recording.pictures.count == frames["sent"] as? Int)
  }

  #if X264
    @Test func `an encoder that is too slow takes a cheaper preset, and the stream continues`() throws {
      let recorder = try DatagramRecorder()
      // More than any machine of today can do.
      let stream = try Stream(
        [
          "--size", "1920x1080", "--fps", "60", "--encoder", "x264", "--x264-preset", "veryslow", "--threads", "1",
          "--to", "rtp://127.0.0.1:\(recorder.port)",
        ])
      try #require(
        try eventually(within: 120) { try stream.adaptation()["x264_preset"] is String }, "\(stream.program.errorSoFar)"
      )
      #expect(eventually { stream.program.log.warnings.contains { $0.hasPrefix("encoding takes too long, ") } })
      let figures = try stream.end()
      let recording = try StreamRecording(recorder.finish())
      #expect(recording.sizes == ["1920x1080"])
      #expect(recording.pictures.count == (figures["frames"] as? [String: Any])?["sent"] as? Int)
    }
  #endif

  #if X264
    @Test func `a program that uses more than its budget takes the least preset, and loses no picture`() throws {
      let recorder = try DatagramRecorder()
      let stream = try Stream(
        [
          "--size", "640x360", "--encoder", "x264", "--cpu-budget", "1%", "--to", "rtp://127.0.0.1:\(recorder.port)",
        ])
      try #require(
        try eventually(within: 120) { try stream.quality()["x264_preset"] as? String == "ultrafast" },
        "\(stream.program.errorSoFar)")
      #expect(["budget", "late", "slow"].contains(try stream.quality()["reason"] as? String ?? ""))
      #expect(
        try eventually(within: 60) {
          let encoder = try stream.status()?["encoder"] as? [String: Any]
          let words = (encoder?["name"] as? String)?.split { $0 == " " || $0 == "," }
          return words?.contains("ultrafast") == true
        })
      let shown = try stream.control("status").listing.values(of: "quality")
      #expect(shown.count == 1 && shown.allSatisfy { $0.hasPrefix("x264's ultrafast, changed ") }, "\(shown)")
      #expect(
        eventually {
          stream.program.log.lines.contains { $0.hasPrefix("x264 continues with ultrafast instead of superfast: ") }
        })
      let figures = try stream.end()
      let recording = try StreamRecording(recorder.finish())
      #expect(recording.pictures.count == (figures["frames"] as? [String: Any])?["sent"] as? Int)
    }
  #endif

  private static let hardware = ["--size", "320x240", "--encoder", "vaapi", "--keyframe-interval", "1s"]

  @Test func `hardware with room takes its best level, and one that is too slow a faster one, and no picture is lost`()
    throws
  {
    // The driver's middle level, with which it begins, takes nothing; or 60 ms, of which each faster level takes 20 less. Two frames
    // a second: a pause of the machine is half a second long, twice in a row, before they are late.
    for (rate, milliseconds, levels, reasons) in [
      ("2", "0", [1, 2, 3], ["room"]), ("10", "20", [5, 6, 7], ["slow", "late"]),
    ] {
      func begin(_ recorder: DatagramRecorder) throws -> Stream {
        try Stream(
          Self.hardware + ["--fps", rate, "--to", "rtp://127.0.0.1:\(recorder.port)"],
          knobs: ["QUALITY_MS": milliseconds])
      }
      var recorder = try DatagramRecorder()
      var stream = try begin(recorder)
      var (hasChanged, isHeldUp) = (false, false)
      for attempt in 1...3 {
        _ = try eventually(within: 120) {
          let quality = try stream.quality()
          let (level, reason) = (quality["vaapi_quality"] as? Int ?? 0, quality["reason"] as? String ?? "")
          hasChanged = levels.contains(level) && reasons.contains(reason)
          isHeldUp = reasons == ["room"] && ["late", "slow"].contains(reason)
          return hasChanged || isHeldUp
        }
        // Where the machine was held up all the same, there is room two minutes later at the earliest: another stream is sooner.
        guard isHeldUp, attempt < 3 else { break }
        _ = try stream.end()
        _ = recorder.finish()
        recorder = try DatagramRecorder()
        stream = try begin(recorder)
      }
      try #require(hasChanged, "\(stream.program.errorSoFar)")
      let quality = try stream.quality()
      #expect(quality["vaapi_quality_levels"] as? Int == 7 && quality["encode_limit_ms"] is Double)
      #expect(quality["x264_preset"] == nil && quality["processor_budget"] == nil)
      let shown = try stream.control("status").listing.values(of: "quality")
      #expect(shown.count == 1 && shown.allSatisfy { $0.hasPrefix("VA-API's level ") }, "\(shown)")
      #expect(
        eventually {
          stream.program.log.lines.contains { $0.hasPrefix("VA-API continues with quality level ") }
        })
      try stream.waitForPictures()
      let figures = try stream.end()
      let recording = try StreamRecording(recorder.finish())
      #expect(recording.pictures.count == (figures["frames"] as? [String: Any])?["sent"] as? Int)
      #expect(stream.driver.violations.isEmpty, "\(stream.driver.violations)")
      let summaries = stream.driver.summaries
      // The changes of the level between IDR pictures.
      let between = summaries.map { summary in
        let words = summary.split(separator: " ")
        return words.drop { $0 != "between" }.dropFirst().first
      }
      #expect(!between.isEmpty && between.allSatisfy { $0 == "0" }, "\(summaries)")
    }
  }

  @Test func `a quality level that is given stays`() throws {
    let recorder = try DatagramRecorder()
    let stream = try Stream(
      Self.hardware + ["--fps", "10", "--vaapi-quality", "3", "--to", "rtp://127.0.0.1:\(recorder.port)"],
      knobs: ["QUALITY_MS": "30"])
    try stream.waitForPictures()
    usleep(3_000_000)
    #expect(try stream.quality().isEmpty)
    _ = try stream.end()
    // That of the standby too.
    let summaries = stream.driver.summaries
    #expect(!summaries.isEmpty && summaries.allSatisfy { $0.hasSuffix(" levels 1 between 0 last 3") }, "\(summaries)")
  }

  @Test(arguments: ["65,75", "80,70,90", "a,b,c", "1,2,300", "warm"])
  func `temperatures that are none are refused`(text: String) throws {
    let directory = try TemporaryDirectory()
    let result = try Subprocess.run([nightjarPath, "stream", "--source", "test", "--thermal", text], in: directory)
    #expect(result.status == 64)
    let mend = "choose auto, off, or three rising temperatures from -40 to 150, as in 65,75,85"
    #expect(result.error.split(separator: "\n").first?.hasSuffix(mend) == true, "\(result.error)")
  }
}
