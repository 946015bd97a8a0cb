import TestSupport
import Testing

/// A rotation of the frame that comes, and ffmpeg's name for it.
struct TurnCase: CustomTestStringConvertible, Sendable {
  let degrees: Int
  let isMirrored: Bool
  /// Of what comes out.
  let size: String
  /// Of what goes in.
  let sourceSize: String
  let filter: String

  init(_ degrees: Int, mirrored: Bool = false, _ filter: String, _ size: (Int, Int) = (640, 360)) {
    self.degrees = degrees
    isMirrored = mirrored
    self.filter = filter
    self.size = "\(size.0)x\(size.1)"
    sourceSize = degrees % 180 == 0 ? self.size : "\(size.1)x\(size.0)"
  }

  var testDescription: String { "\(degrees)\(isMirrored ? " mirrored" : "") to \(size)" }
  var arguments: [String] {
    ["--size", size, "--orientation", "\(degrees)", "--mirrored", isMirrored ? "yes" : "no"]
  }

  static let all = [
    TurnCase(90, "transpose=clock"), TurnCase(180, "hflip,vflip"), TurnCase(270, "transpose=cclock"),
    TurnCase(0, mirrored: true, "hflip"), TurnCase(90, mirrored: true, "transpose=clock,hflip"),
    TurnCase(180, mirrored: true, "vflip"), TurnCase(270, mirrored: true, "transpose=cclock,hflip"),
  ]
  /// Of sizes that macroblocks do not fit, wide and tall.
  static let odd = [
    TurnCase(90, "transpose=clock", (1078, 1918)), TurnCase(270, "transpose=cclock", (98, 34)),
    TurnCase(180, "hflip,vflip", (1920, 1080)), TurnCase(90, mirrored: true, "transpose=clock,hflip", (1918, 1078)),
  ]
}

@Suite("VA-API video processing", .serialized)
struct TurningTests {
  private static let exact = ["--rate-control", "4", "--frames", "6", "--profile", "high", "--noise", "1"]

  /// The lowest PSNR of a frame of the stream against what `turn` has ffmpeg make of its source, dB.
  private func quality(_ turn: TurnCase, _ driver: StrictDriver) throws -> Double {
    let result = try Subprocess.run(
      [
        "ffmpeg", "-nostdin", "-hide_banner", "-nostats", "-r", "30", "-i", driver.stream, "-f", "rawvideo", "-pix_fmt",
        "nv12", "-s", turn.sourceSize, "-r", "30", "-i", driver.source, "-lavfi", "[1:v]\(turn.filter)[t];[0:v][t]psnr",
        "-f", "null", "-",
      ], in: driver.directory)
    return try PictureQuality(log: result.error).lowest
  }

  private func check(_ turn: TurnCase, _ arguments: [String] = [], knobs: [String: String] = [:]) throws {
    let driver = try StrictDriver()
    let run = try driver.encode(turn.arguments + Self.exact + arguments, knobs: knobs)
    #expect(run.status == 0, "\(run.lines) \(run.error)")
    #expect(run.violations == [])
    #expect(run.number("turned") == 6)
    #expect(run.number(arguments.contains("--export") ? "imported" : "copied") == 6)
    #expect(try driver.decodingErrors() == "")
    let probe = try driver.probe()
    #expect("\(probe["width"] ?? "")x\(probe["height"] ?? "")" == turn.size)
    #expect(try quality(turn, driver) > 46)
  }

  @Test("turns as ffmpeg does", arguments: TurnCase.all + TurnCase.odd)
  func turns(_ turn: TurnCase) throws { try check(turn) }

  @Test("turns as ffmpeg does, where the mirror comes last", arguments: TurnCase.all.filter(\.isMirrored))
  func mirrorsLast(_ turn: TurnCase) throws { try check(turn, knobs: ["PROCESS": "mirror-last"]) }

  @Test(
    "turns what is uploaded by images of our own, with odd pitches",
    arguments: runsLong ? TurnCase.all : TurnCase.all.filter(\.isMirrored))
  func uploads(_ turn: TurnCase) throws { try check(turn, knobs: ["DERIVE": "0", "PITCH": "odd"]) }

  @Test("turns DMA-BUFs without a copy", arguments: runsLong ? TurnCase.all : TurnCase.all.filter(\.isMirrored))
  func imports(_ turn: TurnCase) throws { try check(turn, ["--export", "yes"]) }

  @Test("turns copies where DMA-BUFs are refused")
  func refusedImport() throws {
    let driver = try StrictDriver()
    let run = try driver.encode(TurnCase.all[0].arguments + Self.exact + ["--export", "yes"], knobs: ["IMPORT": "0"])
    #expect(run.status == 0, "\(run.lines)")
    #expect((run.number("copied"), run.number("turned")) == (6, 6))
    #expect(try quality(TurnCase.all[0], driver) > 46)
  }

  @Test(
    "is believed only as far as it does what it lists",
    arguments: [
      ("all", "[90, 180, 270, 0 mirrored, 90 mirrored, 180 mirrored, 270 mirrored]"), ("rotate", "[90, 180, 270]"),
      ("wrong", "[180, 0 mirrored, 90 mirrored, 180 mirrored, 270 mirrored]"), ("none", "[]"),
    ])
  func belief(process: String, turns: String) throws {
    let driver = try StrictDriver()
    let run = try driver.encode(
      ["--orientation", "0", "--frames", "3", "--rate-control", "20"], knobs: ["PROCESS": process])
    #expect(run.status == 0, "\(run.lines) \(run.error)")
    #expect(run.violations == [])
    #expect(run.values["turns"] == turns)
    #expect(try driver.decodingErrors() == "")
  }

  @Test("that is not there is told by the frame that needs it")
  func absent() throws {
    let driver = try StrictDriver()
    let run = try driver.encode(TurnCase.all[0].arguments + Self.exact, knobs: ["PROCESS": "none"])
    #expect(run.values["error"]?.hasPrefix("a frame to rotate by 90 is refused") == true, "\(run.lines)")
    #expect(run.violations == [])
  }

  @Test("that fails in mid-stream says so, and is not asked again", arguments: ["no", "yes"])
  func failure(exports: String) throws {
    let driver = try StrictDriver()
    // Two pictures were encoded to warm up.
    let run = try driver.encode(
      TurnCase.all[0].arguments + Self.exact + ["--go-on", "yes", "--export", exports],
      knobs: ["FAIL": "process", "FAIL_AT": "5"])
    #expect(run.violations == [])
    #expect(run.failures.count == 4, "\(run.lines)")
    #expect(run.failures.first?.contains("vaEndPicture (video processing)") == true)
    #expect(run.values["turns"] == "[]")
    #expect(run.number("delivered") == 2)
  }
}
