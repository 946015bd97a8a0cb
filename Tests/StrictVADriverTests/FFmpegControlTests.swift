import Foundation
import TestSupport
import Testing

/// ffmpeg's `h264_vaapi` and `hevc_vaapi` are the control: a client that is known to be right must find nothing wrong with the driver.
@Suite struct FFmpegControlTests {
  /// One run of ffmpeg.
  struct Case: Sendable, CustomTestStringConvertible {
    var codec = "h264"
    var width = 640
    var height = 480
    var knobs: [String: String] = [:]
    var options = ["-qp", "20"]
    var minimum = 38.0

    var testDescription: String {
      let set = knobs.sorted { $0.key < $1.key }.map { "\($0.key)=\($0.value)" }
      return ([codec, "\(width)x\(height)"] + set + options).joined(separator: " ")
    }
  }

  /// Of whole macroblocks, and of parts of them; `make check-long` has more of either.
  static let sizes = [(640, 480), (638, 470)] + (runsLong ? [(1918, 1078), (1280, 720), (1920, 1080)] : [])

  /// Every size with packed headers or none and each rate control; the entry points in turn.
  static let matrix: [Case] = sizes.flatMap { width, height in
    ["all", "none"].flatMap { packed in
      ["cqp", "cbr", "vbr"].map { control in
        let lowPower = (packed == "all") == (control == "cbr")
        var each = Case(width: width, height: height, knobs: ["PACKED": packed, "RC": control])
        each.knobs["ENTRYPOINT"] = lowPower ? "lp" : "slice"
        if control == "cbr" { each.options = ["-b:v", "20M", "-maxrate", "20M"] }
        if control == "vbr" { each.options = ["-b:v", "16M", "-maxrate", "24M"] }
        if control != "cqp" { each.minimum = 30 }
        if lowPower { each.options += ["-low_power", "1"] }
        return each
      }
    }
  }

  /// Knobs that change how a client must go about it, and the coding tools.
  static let variations = [
    Case(knobs: ["SEGMENTS": "5"]),
    Case(width: 1918, height: 1078, knobs: ["SEGMENTS": "64", "PITCH": "odd"]),
    Case(knobs: ["DERIVE": "0"]),
    Case(width: 1918, height: 1078, knobs: ["DERIVE": "0", "PITCH": "odd", "SYNC_BUFFER": "0"]),
    Case(knobs: ["IMPORT": "0", "QUALITY": "0"]),
    Case(knobs: ["PACKED": "sequence"]),
    Case(knobs: ["PACKED": "sequence,slice"]),
    Case(knobs: ["SLOW_MS": "10"]),
    Case(options: ["-qp", "20", "-coder", "cavlc", "-g", "3"]),
    Case(knobs: ["PACKED": "none"], options: ["-qp", "20", "-coder", "cavlc"]),
    Case(options: ["-qp", "20", "-slices", "4", "-profile:v", "main"]),
    Case(knobs: ["PACKED": "none"], options: ["-qp", "20", "-slices", "3", "-profile:v", "constrained_baseline"]),
    Case(width: 1918, height: 1078, options: ["-qp", "20", "-slices", "4", "-coder", "cavlc"]),
    Case(options: ["-qp", "1"], minimum: 50),
    Case(options: ["-qp", "51"], minimum: 20),
  ]

  /// HEVC, on drivers that say what they have, and that do not. Without packed headers there is no conformance window.
  static let hevc = [
    Case(codec: "hevc"), Case(codec: "hevc", width: 1918, height: 1078, knobs: ["SEGMENTS": "5", "PITCH": "odd"]),
    Case(codec: "hevc", knobs: ["PACKED": "none", "DERIVE": "0"]),
    Case(codec: "hevc", knobs: ["PACKED": "sequence"], options: ["-b:v", "20M", "-maxrate", "20M"], minimum: 30),
    Case(codec: "hevc", knobs: ["HEVC": "plain"], options: ["-b:v", "16M", "-maxrate", "24M"], minimum: 30),
    Case(
      codec: "hevc", width: 642, height: 358, knobs: ["HEVC": "cb16,simple", "ENTRYPOINT": "lp"],
      options: [
        "-qp", "20", "-low_power", "1", "-g", "3",
      ]),
    Case(codec: "hevc", options: ["-qp", "1"], minimum: 50), Case(codec: "hevc", options: ["-qp", "51"], minimum: 20),
  ]

  @Test(arguments: matrix + variations + hevc) func `encodes without a violation and decodes to the same pictures`(
    _ each: Case
  ) throws {
    let driver = try StrictDriver()
    let directory = driver.directory
    let pictures = Pictures(width: each.width, height: each.height, codec: each.codec)
    let count = 10
    try pictures.make(count, at: directory.path("in"), in: directory)
    let result = try driver.encode(pictures, each.options, knobs: each.knobs)
    #expect(result.status == 0, "\(result.error)")
    try pictures.check(count, from: driver, minimum: each.minimum)
  }

  @Test(arguments: [("CBR", ["-b:v", "1M", "-maxrate", "1M"]), ("VBR", ["-b:v", "1M", "-maxrate", "1500k"])])
  func `keeps to the bit rate`(_ name: String, _ options: [String]) throws {
    let driver = try StrictDriver()
    let pictures = Pictures(width: 640, height: 480)
    try pictures.make(150, at: driver.directory.path("in"), in: driver.directory)
    let result = try driver.encode(pictures, options)
    #expect(result.status == 0, "\(result.error)")
    #expect(driver.violations.isEmpty)
    let megabits = Double(driver.summed("bytes")) * 8 / 5 / 1_000_000
    #expect(megabits > 0.7 && megabits < 1.3, "\(name): \(megabits) Mbit/s")
  }

  @Test func `keeps to the bit rate in HEVC`() throws {
    let driver = try StrictDriver()
    let pictures = Pictures(width: 640, height: 480, codec: "hevc")
    try pictures.make(150, at: driver.directory.path("in"), in: driver.directory)
    for options in [["-b:v", "500k", "-maxrate", "500k"], ["-b:v", "500k", "-maxrate", "750k"]] {
      let result = try driver.encode(pictures, options)
      #expect(result.status == 0, "\(result.error)")
      #expect(driver.violations.isEmpty)
      let megabits = Double(driver.summed("bytes")) * 8 / 5 / 1_000_000
      #expect(megabits > 0.35 && megabits < 0.65, "\(options): \(megabits) Mbit/s")
    }
  }

  @Test func `repeats a picture in slices of both lists`() throws {
    let driver = try StrictDriver()
    let directory = driver.directory
    let pictures = Pictures(width: 640, height: 480, codec: "hevc")
    try pictures.make(6, at: directory.path("in"), in: directory)
    for packed in ["all", "none"] {
      let result = try driver.encode(
        pictures, ["-qp", "20", "-g", "3"], knobs: ["HEVC": "both-lists", "PACKED": packed])
      #expect(result.status == 0, "\(result.error)")
      #expect(driver.violations.isEmpty)
      let digests = try StreamRecording.checksums(of: directory.path("out.hevc"), in: directory)
      #expect(digests.count == 6 && Set(digests).count == 2, "\(digests)")
      #expect(digests[0] == digests[2] && digests[3] == digests[5])
    }
  }

  @Test(arguments: [("clock", "transpose=clock"), ("cclock", "transpose=cclock"), ("reversal", "hflip,vflip")])
  func `turns pictures as ffmpeg's own filters do`(_ direction: String, _ filter: String) throws {
    let driver = try StrictDriver()
    let directory = driver.directory
    let pictures = Pictures(width: 638, height: 474)
    try pictures.make(3, at: directory.path("in"), in: directory)
    let source =
      ["ffmpeg", "-v", "error", "-vaapi_device", driver.node] + pictures.input + ["-i", directory.path("in")]
    let turn = "hwupload,transpose_vaapi=dir=\(direction),hwdownload,format=nv12"
    let turned = try driver.run(source + ["-vf", turn, "-f", "md5", "-"], knobs: ["PITCH": "odd", "DERIVE": "0"])
    let expected = try driver.run(source + ["-vf", "\(filter),format=nv12", "-f", "md5", "-"])
    #expect(turned.status == 0, "\(turned.error)")
    #expect(turned.outputText.hasPrefix("MD5="))
    #expect(turned.outputText == expected.outputText)
    #expect(driver.violations.isEmpty)
  }
}

extension StrictDriver {
  /// Encodes the pictures in `in` to `out` with the codec's suffix by ffmpeg's VA-API encoder.
  func encode(_ pictures: Pictures, _ options: [String], knobs: [String: String] = [:]) throws -> Subprocess.Result {
    try run(encodeCommand(pictures, options), knobs: knobs)
  }

  func encodeCommand(_ pictures: Pictures, _ options: [String]) -> [String] {
    ["ffmpeg", "-v", "error", "-y", "-vaapi_device", node] + pictures.input
      + ["-i", directory.path("in"), "-vf", "hwupload", "-c:v", "\(pictures.codec)_vaapi"] + options
      + ["-f", pictures.codec, directory.path("out.\(pictures.codec)")]
  }
}
