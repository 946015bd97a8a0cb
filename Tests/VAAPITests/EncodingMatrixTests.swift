import TestSupport
import Testing

/// One combination of what drivers do.
struct MatrixCase: CustomTestStringConvertible, Sendable {
  var size = "640x480"
  var entryPoint = "slice"
  var packed = "all"
  var control = "20"
  var offered = "cqp,cbr,vbr"
  var segments = 1
  var derives = true
  var oddPitch = false
  var profile = "high"
  var slices = 1
  var syncsBuffers = true

  var testDescription: String {
    "\(size) \(entryPoint) packed \(packed) \(control) of \(offered) \(segments) segments derive \(derives) "
      + "odd pitch \(oddPitch) \(profile) \(slices) slices"
  }

  var knobs: [String: String] {
    [
      "ENTRYPOINT": entryPoint, "PACKED": packed, "RC": offered, "SEGMENTS": "\(segments)",
      "DERIVE": derives ? "1" : "0", "PITCH": oddPitch ? "odd" : "", "SYNC_BUFFER": syncsBuffers ? "1" : "0",
    ]
  }

  /// Some of everything, each value at least once with each size.
  static let slim: [MatrixCase] = [
    MatrixCase(),
    MatrixCase(
      entryPoint: "lp", packed: "none", control: "cbr", segments: 5, derives: false, oddPitch: true, profile: "main"),
    MatrixCase(packed: "sequence-only", control: "vbr", segments: 3, profile: "baseline", slices: 4),
    MatrixCase(size: "1280x720", entryPoint: "lp", control: "vbr", oddPitch: true, slices: 3, syncsBuffers: false),
    MatrixCase(size: "1280x720", packed: "none", derives: false, profile: "baseline"),
    MatrixCase(size: "1918x1078", packed: "none", segments: 7, oddPitch: true, slices: 8),
    MatrixCase(
      size: "1918x1078", entryPoint: "lp", control: "cbr", derives: false, oddPitch: true, profile: "baseline"),
    MatrixCase(size: "1920x1080", entryPoint: "lp", packed: "none", control: "cbr", profile: "main", slices: 4),
    MatrixCase(size: "1920x1080", derives: false, oddPitch: true),
  ]

  /// Everything with everything.
  static var full: [MatrixCase] {
    var cases: [MatrixCase] = []
    for size in ["640x480", "1280x720", "1918x1078", "1920x1080"] {
      for entryPoint in ["slice", "lp"] {
        for packed in ["all", "none"] {
          for control in ["20", "cbr", "vbr"] {
            for segments in [1, 6] {
              for derives in [true, false] {
                for oddPitch in [false, true] {
                  // Profiles and slices go round, so that each meets most of the rest.
                  let profile = ["baseline", "main", "high"][cases.count % 3]
                  cases.append(
                    MatrixCase(
                      size: size, entryPoint: entryPoint, packed: packed, control: control, segments: segments,
                      derives: derives, oddPitch: oddPitch, profile: profile, slices: 1 + cases.count % 5))
                }
              }
            }
          }
        }
      }
    }
    return cases
  }
}

@Suite("VA-API streams", .serialized)
struct EncodingMatrixTests {
  @Test(
    "decode without errors and look like the source, whatever the driver does",
    arguments: runsLong ? MatrixCase.full : MatrixCase.slim)
  func matrix(_ combination: MatrixCase) throws {
    let driver = try StrictDriver()
    let run = try driver.encode(
      [
        "--size", combination.size, "--rate-control", combination.control, "--bitrate", "20000000", "--frames", "12",
        "--profile", combination.profile, "--slices", "\(combination.slices)", "--key-interval", "8",
      ], knobs: combination.knobs)
    #expect(run.status == 0, "\(run.lines) \(run.error)")
    #expect(run.violations == [])
    #expect(run.values["keyframes"] == "0,8")
    #expect(run.number("copied") == 12)
    #expect(try driver.decodingErrors() == "")
    let probe = try driver.probe()
    #expect(probe["nb_read_frames"] == "12")
    #expect("\(probe["width"] ?? "")x\(probe["height"] ?? "")" == combination.size)
    #expect(
      probe["profile"]
        == ["baseline": "Constrained Baseline", "main": "Main", "high": "High"][combination.profile])
    // The VUI is ours even where the driver wrote the parameter sets.
    #expect(probe["color_space"] == "bt709")
    #expect(probe["r_frame_rate"] == "30/1")
    #expect(probe["has_b_frames"] == "0")
    #expect(try driver.quality(combination.size).lowest > 38)
    let entryPoint = combination.entryPoint == "lp" ? "EncSliceLP" : "EncSlice"
    let mode = combination.control == "20" ? "CQP" : combination.control.uppercased()
    #expect(Array(run.nameParts.dropFirst().prefix(2)) == [entryPoint, mode], "\(run.nameParts)")
  }

  @Test("keep the bitrate where the driver has constant quantizers alone", arguments: [400_000, 1_200_000])
  func steering(bitrate: Int) throws {
    let driver = try StrictDriver()
    let run = try driver.encode(
      ["--rate-control", "cbr", "--bitrate", "\(bitrate)", "--frames", "240", "--key-interval", "60"],
      knobs: ["RC": "cqp"])
    #expect(run.status == 0, "\(run.lines)")
    #expect(run.violations == [])
    let measured = try #require(run.number("bytes")) * 8 * 30 / 240
    #expect((bitrate * 8 / 10...bitrate * 12 / 10).contains(measured), "\(measured) bit/s for \(bitrate)")
    #expect(try driver.decodingErrors() == "")
  }

  @Test(
    "take the nearest rate control",
    arguments: [("vbr", "cbr", "VBR"), ("cbr", "vbr", "CBR"), ("cbr", "25", "CBR"), ("vbr", "25", "VBR")])
  func nearest(offered: String, asked: String, used: String) throws {
    let driver = try StrictDriver()
    let run = try driver.encode(["--rate-control", asked, "--frames", "10"], knobs: ["RC": offered])
    #expect(run.nameParts.dropFirst(2).first == used, "\(run.lines)")
    #expect(run.violations == [])
    #expect(try driver.decodingErrors() == "")
  }

  @Test(
    "are as large as was asked for, also where no macroblock fits",
    arguments: zip(["16x16", "18x34", "1080x1920", "4096x16"], ["none", "all", "none", "all"]))
  func sizes(size: String, packed: String) throws {
    let driver = try StrictDriver()
    let run = try driver.encode(
      ["--size", size, "--rate-control", "20", "--frames", "4"], knobs: ["PACKED": packed, "PITCH": "odd"])
    #expect(run.status == 0, "\(run.lines)")
    #expect(run.violations == [])
    #expect(try driver.decodingErrors() == "")
    let probe = try driver.probe()
    #expect("\(probe["width"] ?? "")x\(probe["height"] ?? "")" == size)
    #expect(try driver.quality(size).lowest > 38)
  }

  @Test("go on where frame_num and the order count begin anew", arguments: ["all", "none"])
  func wrap(packed: String) throws {
    // frame_num has 8 bits, the order count 10 and two a picture.
    let driver = try StrictDriver()
    let run = try driver.encode(
      ["--size", "64x64", "--rate-control", "20", "--frames", "1100"], knobs: ["PACKED": packed])
    #expect(run.status == 0, "\(run.lines)")
    #expect(run.violations == [])
    #expect(run.values["keyframes"] == "0")
    #expect(try driver.decodingErrors() == "")
    #expect(try driver.probe()["nb_read_frames"] == "1100")
    #expect(try driver.quality("64x64").lowest > 38)
  }

  @Test(
    "have our headers only with an SPS of ours",
    arguments: ["slice", "picture,slice", "sequence,slice", "sequence,picture", "raw", "misc"])
  func packed(_ offered: String) throws {
    let driver = try StrictDriver()
    let run = try driver.encode(
      ["--rate-control", "20", "--frames", "6", "--slices", "3", "--profile", "high"], knobs: ["PACKED": offered])
    #expect(run.status == 0, "\(run.lines)")
    #expect(run.violations == [])
    #expect(try driver.decodingErrors() == "")
    #expect(try driver.quality("640x480").lowest > 38)
  }
}
