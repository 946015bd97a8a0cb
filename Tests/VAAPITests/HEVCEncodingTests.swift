import Foundation
import TestSupport
import Testing

/// A combination of the driver's features, the picture size and the rate control.
struct HEVCCase: CustomTestStringConvertible, Sendable {
  var size = "640x480"
  var entryPoint = "slice"
  var packed = "all"
  var control = "20"
  /// The words of the knob `HEVC`.
  var driver = ""
  var segments = 1
  var derives = true
  var oddPitch = false

  var testDescription: String {
    "\(size) \(entryPoint) packed \(packed) \(control) driver \(driver) \(segments) segments derive \(derives) "
      + "odd pitch \(oddPitch)"
  }

  var knobs: [String: String] {
    [
      "ENTRYPOINT": entryPoint, "PACKED": packed, "SEGMENTS": "\(segments)", "DERIVE": derives ? "1" : "0",
      "PITCH": oddPitch ? "odd" : "", "HEVC": driver,
    ]
  }

  /// The combinations of a short run.
  static let slim: [HEVCCase] = [
    HEVCCase(),
    HEVCCase(entryPoint: "lp", packed: "none", control: "cbr", segments: 5, derives: false, oddPitch: true),
    HEVCCase(packed: "sequence", control: "vbr", driver: "plain", segments: 3),
    HEVCCase(size: "642x358", packed: "none", driver: "ctb32"),
    HEVCCase(size: "642x358", entryPoint: "lp", control: "vbr", driver: "ctb16,simple"),
    HEVCCase(size: "638x358", driver: "cb16,ctb64", segments: 7, oddPitch: true),
    HEVCCase(size: "642x358", driver: "required"),
    HEVCCase(size: "640x360", packed: "none", control: "cbr", driver: "required"),
    HEVCCase(size: "360x640", entryPoint: "lp", control: "cbr", driver: "required", derives: false),
  ]

  /// The combinations of a long run: all sizes, packed headers, rate controls and driver words with each other.
  static var full: [HEVCCase] {
    var cases: [HEVCCase] = []
    for size in ["640x480", "642x358", "1918x1078", "1920x1080"] {
      for packed in ["all", "none", "sequence", "sequence,slice"] {
        for control in ["20", "cbr", "vbr"] {
          for driver in ["", "plain", "simple", "required", "ctb16", "ctb32", "ctb64", "cb16"] {
            // The other properties alternate with different periods, so that most of their combinations occur too.
            cases.append(
              HEVCCase(
                size: size, entryPoint: cases.count % 2 == 0 ? "slice" : "lp", packed: packed, control: control,
                driver: driver, segments: 1 + cases.count % 6, derives: cases.count % 3 != 0,
                oddPitch: cases.count % 5 < 2))
          }
        }
      }
    }
    return cases
  }
}

@Suite("VA-API streams of HEVC", .serialized)
struct HEVCEncodingTests {
  @Test(
    "decode without errors and look like the source, whatever the driver does",
    arguments: runsLong ? HEVCCase.full : HEVCCase.slim)
  func matrix(_ combination: HEVCCase) throws {
    let driver = try StrictDriver(codec: "hevc")
    // Coding tree blocks of 16 samples end below level 5, which a peak of more than 20 Mbit/s needs.
    let bitrate = combination.driver.contains("ctb16") ? "12000000" : "20000000"
    let run = try driver.encode(
      [
        "--size", combination.size, "--rate-control", combination.control, "--bitrate", bitrate, "--frames", "12",
        "--key-interval", "8",
      ], knobs: combination.knobs)
    #expect(run.status == 0, "\(run.lines) \(run.error)")
    #expect(run.violations == [])
    #expect(run.values["keyframes"] == "0,8")
    #expect(run.number("copied") == 12 && run.number("set-changes") == 0)
    #expect(try driver.decodingErrors() == "")
    let probe = try driver.probe()
    #expect(probe["codec_name"] == "hevc" && probe["profile"] == "Main")
    #expect(probe["nb_read_frames"] == "12")
    #expect("\(probe["width"] ?? "")x\(probe["height"] ?? "")" == combination.size)
    // The VUI and the conformance window are ours even where the driver wrote the parameter sets.
    #expect(probe["color_space"] == "bt709")
    #expect(probe["r_frame_rate"] == "30/1")
    #expect(probe["has_b_frames"] == "0")
    #expect(try driver.quality(combination.size).lowest > 38)
    let entryPoint = combination.entryPoint == "lp" ? "EncSliceLP" : "EncSlice"
    let mode = combination.control == "20" ? "CQP" : combination.control.uppercased()
    #expect(Array(run.nameParts.dropFirst()) == [entryPoint, mode, "1 slice"], "\(run.nameParts)")
  }

  /// The types of the pictures, as ffmpeg reads their slices.
  private func types(_ driver: StrictDriver) throws -> String {
    try Subprocess.run(
      ["ffprobe", "-v", "error", "-show_entries", "frame=pict_type", "-of", "csv=p=0", driver.stream],
      in: driver.directory
    ).outputText.filter(\.isLetter)
  }

  /// The numbers of pictures that the parameter sets let a picture overtake, as ffmpeg reads them.
  private func reordering(_ driver: StrictDriver) throws -> Set<Substring> {
    let traced = try Subprocess.run(
      ["ffmpeg", "-v", "verbose", "-i", driver.stream, "-c", "copy", "-bsf:v", "trace_headers", "-f", "null", "-"],
      in: driver.directory
    ).error
    return Set(
      traced.split(separator: "\n").filter { $0.contains("ps_max_num_reorder_pics") }.compactMap {
        $0.split(separator: " ").last
      })
  }

  @Test("are of B slices for hardware without P slices", arguments: pairs(["all", "none"], ["20", "cbr"]))
  func bothLists(packed: String, control: String) throws {
    // The strict driver repeats the key frame in such slices.
    let driver = try StrictDriver(codec: "hevc")
    let run = try driver.encode(
      ["--rate-control", control, "--size", "642x358", "--frames", "9", "--key-interval", "4"],
      knobs: ["PACKED": packed, "HEVC": "both-lists"])
    #expect(run.status == 0, "\(run.lines) \(run.error)")
    #expect(run.violations == [])
    #expect(try driver.decodingErrors() == "")
    #expect(try types(driver) == "IBBBIBBBI")
    // ffprobe's has_b_frames guesses from the types of slices.
    #expect(try reordering(driver) == ["0"])
    let checksums = try StreamRecording.checksums(of: driver.stream, in: driver.directory)
    #expect(checksums.count == 9 && Set(checksums).count == 3)
  }

  @Test("are of P slices otherwise") func predicted() throws {
    let driver = try StrictDriver(codec: "hevc")
    _ = try driver.encode(["--rate-control", "20", "--frames", "5"])
    #expect(try types(driver) == "IPPPP")
  }

  /// The driver's x265 codes no picture right that refers to one of a single column of blocks: such pictures are IDR pictures.
  @Test(
    "are as large as was asked for, also where no block fits",
    arguments: zip(["16x16", "18x34", "24x16", "4096x16"], ["1", "300", "300", "300"]))
  func sizes(size: String, interval: String) throws {
    for packed in ["all", "none"] {
      let driver = try StrictDriver(codec: "hevc")
      let run = try driver.encode(
        ["--size", size, "--rate-control", "20", "--frames", "4", "--key-interval", interval],
        knobs: ["PACKED": packed, "PITCH": "odd"])
      #expect(run.status == 0, "\(run.lines)")
      #expect(run.violations == [])
      #expect(try driver.decodingErrors() == "")
      let probe = try driver.probe()
      #expect("\(probe["width"] ?? "")x\(probe["height"] ?? "")" == size)
      #expect(try driver.quality(size).lowest > 38)
    }
  }

  @Test("go on where the order count begins anew", arguments: ["all", "none"]) func wrap(packed: String) throws {
    let driver = try StrictDriver(codec: "hevc")
    let run = try driver.encode(
      ["--size", "66x64", "--rate-control", "20", "--frames", "600"], knobs: ["PACKED": packed])
    #expect(run.status == 0, "\(run.lines)")
    #expect(run.violations == [])
    #expect(run.values["keyframes"] == "0")
    #expect(try driver.decodingErrors() == "")
    #expect(try driver.probe()["nb_read_frames"] == "600")
    #expect(try driver.quality("66x64").lowest > 38)
  }

  @Test("keep the bitrate where the driver has constant quantizers alone", arguments: [150_000, 450_000])
  func steering(bitrate: Int) throws {
    let driver = try StrictDriver(codec: "hevc")
    let run = try driver.encode(
      [
        "--size", "320x240", "--rate-control", "cbr", "--bitrate", "\(bitrate)", "--frames", "240", "--key-interval",
        "60",
      ],
      knobs: ["RC": "cqp"])
    #expect(run.status == 0, "\(run.lines)")
    #expect(run.violations == [])
    let measured = try #require(run.number("bytes")) * 8 * 30 / 240
    #expect((bitrate * 8 / 10...bitrate * 12 / 10).contains(measured), "\(measured) bit/s for \(bitrate)")
    #expect(try driver.decodingErrors() == "")
  }

  @Test("change the rate without an IDR or another SPS", arguments: pairs(["cbr", "vbr"], ["cbr,vbr", "cqp"]))
  func change(control: String, offered: String) throws {
    let driver = try StrictDriver(codec: "hevc")
    let arguments = ["--size", "320x240", "--rate-control", control, "--bitrate", "150000", "--frames"]
    let before = try driver.encode(arguments + ["60"], knobs: ["RC": offered])
    let run = try driver.encode(arguments + ["120", "--change", "60,1200000,30"], knobs: ["RC": offered])
    #expect(run.status == 0, "\(run.lines)")
    #expect(before.violations + run.violations == [])
    #expect(run.values["keyframes"] == "0")
    #expect(run.number("set-changes") == 0)
    #expect(try driver.decodingErrors() == "")
    // The same 60 frames, and 60 at eight times the rate.
    let first = try #require(before.number("bytes"))
    let all = try #require(run.number("bytes"))
    #expect(all - first > 2 * first, "\(first) bytes before the change, \(all) in all")
  }

  @Test("take a quality level beyond the driver's as its last one") func quality() throws {
    let driver = try StrictDriver(codec: "hevc")
    for offered in ["0", "4"] {
      let run = try driver.encode(["--quality", "7", "--frames", "4"], knobs: ["QUALITY": offered])
      #expect(run.status == 0, "\(run.lines)")
      #expect(run.violations == [])
    }
  }

  @Test("are of imported DMA-BUFs, and of copies where they are refused", arguments: ["1", "0"])
  func importing(imports: String) throws {
    let driver = try StrictDriver(codec: "hevc")
    let run = try driver.encode(
      ["--size", "1918x1078", "--rate-control", "20", "--frames", "8", "--export", "yes"], knobs: ["IMPORT": imports])
    #expect(run.status == 0, "\(run.lines)")
    #expect(run.violations == [])
    #expect(run.number("imported") == (imports == "1" ? 8 : 0))
    #expect(try driver.decodingErrors() == "")
    #expect(try driver.quality("1918x1078").lowest > 38)
  }

  @Test("are rotated by the driver as ffmpeg does it", arguments: [(90, "transpose=clock"), (180, "hflip,vflip")])
  func turning(degrees: Int, filter: String) throws {
    let driver = try StrictDriver(codec: "hevc")
    let run = try driver.encode([
      "--size", "362x642", "--orientation", "\(degrees)", "--rate-control", "4", "--frames", "6", "--noise", "1",
    ])
    #expect(run.status == 0, "\(run.lines) \(run.error)")
    #expect(run.violations == [])
    #expect(run.number("turned") == 6)
    #expect(try driver.decodingErrors() == "")
    let result = try Subprocess.run(
      [
        "ffmpeg", "-nostdin", "-hide_banner", "-nostats", "-r", "30", "-i", driver.stream, "-f", "rawvideo", "-pix_fmt",
        "nv12", "-s", degrees == 90 ? "642x362" : "362x642", "-r", "30", "-i", driver.source, "-lavfi",
        "[1:v]\(filter)[t];[0:v][t]psnr", "-f", "null", "-",
      ], in: driver.directory)
    #expect(try PictureQuality(log: result.error).lowest > 46)
  }
}

@Suite("VA-API encoding of HEVC")
struct HEVCRuleTests {
  @Test("codes a picture that overflows again, in its place", arguments: pairs(["20", "cbr"], ["all", "none"]))
  func overflow(control: String, packed: String) throws {
    // The driver counts the two pictures of `prepare()` too: 3 is the first IDR, 4 its second try, 8 and 9 one P.
    let driver = try StrictDriver(codec: "hevc")
    let run = try driver.encode(
      ["--size", "320x240", "--rate-control", control, "--frames", "20"],
      knobs: ["OVERFLOW_AT": "3,8,9", "PACKED": packed])
    #expect(run.status == 0, "\(run.lines)")
    #expect(run.violations == [])
    #expect(run.number("overflows") == 2)
    #expect(run.values["keyframes"] == "0")
    #expect(try driver.decodingErrors() == "")
    #expect(try driver.probe()["nb_read_frames"] == "20")
    #expect(try driver.quality("320x240").lowest > 28)
  }

  @Test(
    "goes on with an IDR after a call that failed",
    arguments: pairs(["begin", "render", "end", "sync", "map", "derive"], ["all", "none"]))
  func failing(call: String, packed: String) throws {
    let driver = try StrictDriver(codec: "hevc")
    let run = try driver.encode(
      ["--size", "320x240", "--rate-control", "20", "--frames", "12", "--go-on", "yes"],
      knobs: ["FAIL": call, "FAIL_AT": "7", "PACKED": packed])
    #expect(run.status == 0, "\(run.lines)")
    #expect(run.violations == [])
    #expect(run.failures.count == 1)
    // A picture that never reached the driver leaves the stream whole.
    #expect(run.values["keyframes"] == (call == "derive" ? "0" : "0,5"))
    #expect(run.number("delivered") == 11)
    #expect(try driver.decodingErrors() == "")
    #expect(try driver.probe()["nb_read_frames"] == "11")
  }

  @Test("does not pass a broken picture on", arguments: ["all", "none"]) func garbage(packed: String) throws {
    let driver = try StrictDriver(codec: "hevc")
    let run = try driver.encode(
      ["--size", "320x240", "--rate-control", "20", "--frames", "12", "--go-on", "yes"],
      knobs: ["GARBAGE": "7", "PACKED": packed])
    #expect(run.failures.count == 1, "\(run.lines)")
    #expect(run.values["keyframes"] == "0,5")
    #expect(run.violations == [])
    #expect(try driver.decodingErrors() == "")
  }

  @Test("takes the other entry point where one is a lie", arguments: ["config", "context", "encode"])
  func otherEntryPoint(_ kind: String) throws {
    let driver = try StrictDriver(codec: "hevc")
    let run = try driver.encode(["--frames", "5"], knobs: ["LIE": "\(kind),slice", "ENTRYPOINT": "both"])
    #expect(run.status == 0, "\(run.lines)")
    #expect(run.values["name"]?.contains("EncSliceLP") == true)
    #expect(run.violations == [])
    #expect(try driver.decodingErrors() == "")
  }

  @Test("costs no memory and little time a frame", arguments: ["derive", "import"])
  func overhead(upload: String) throws {
    let driver = try StrictDriver(codec: "hevc")
    let meter = driver.directory.path("meter.so")
    let source = packageRoot.appendingPathComponent("Tests/VAEncodeTool/Meter/meter.c").path
    let compilation = try Subprocess.run(
      ["cc", "-O2", "-Wall", "-Wextra", "-Werror", "-shared", "-fPIC", "-o", meter, source, "-ldl"],
      in: driver.directory)
    try #require(compilation.status == 0, "\(compilation.error)")
    let run = try driver.encode(
      [
        "--size", "1280x720", "--bitrate", "3000000", "--frames", "60", "--export", upload == "import" ? "yes" : "no",
      ], preload: [meter])
    #expect(run.status == 0, "\(run.lines) \(run.error)")
    #expect(run.number("steady-allocations") == 0)
    // The goal is 20 µs in a release build on an idle machine.
    #expect(try #require(run.number("overhead-ns")) < 500_000)
  }
}
