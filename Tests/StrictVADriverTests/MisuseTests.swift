import Foundation
import TestSupport
import Testing

/// The client that makes each mistake, and the check that must find it.
@Suite struct MisuseTests {
  private func misuse(_ driver: StrictDriver, _ arguments: [String], knobs: [String: String] = [:]) throws
    -> Subprocess.Result
  {
    try driver.run(
      ["\(StrictVADriver.directory)/misuse"] + arguments, knobs: ["MISC_FIRST": "0"].merging(knobs) { $1 })
  }

  @Test func `each mistake is found by the check meant for it, and by no other`() throws {
    let driver = try StrictDriver()
    let list = try misuse(driver, ["--list"]).outputText.split(separator: "\n").map { $0.split(separator: " ") }
    #expect(list.count > 140)
    for entry in list {
      let (name, check) = (String(entry[0]), String(entry[1]))
      let result = try misuse(driver, [name])
      // 0: stopped at the mistake; 3: it came through, as a leak does.
      #expect(result.status == (name == "leak" ? 3 : 0), "\(name): \(result.outputText)")
      #expect(!driver.violations.isEmpty, "\(name)")
      for line in driver.violations { #expect(line.hasPrefix("violation: \(check)"), "\(name): \(line)") }
    }
  }

  @Test(arguments: [
    [:], ["PACKED": "none"], ["SEGMENTS": "7"], ["PITCH": "odd"], ["OVERFLOW_AT": "1"], ["OVERFLOW_AT": "3"],
    ["OVERFLOW_AT": "2,3,5"], ["OVERFLOW_AT": "3,4,5"], ["PACKED": "none", "OVERFLOW_AT": "4"],
  ]) func `the same client without a mistake is right`(_ knobs: [String: String]) throws {
    let driver = try StrictDriver()
    let directory = driver.directory
    let result = try misuse(driver, ["none", directory.path("out.h264"), directory.path("in")], knobs: knobs)
    #expect(result.outputText == "none: accepted\n")
    #expect(driver.violations.isEmpty)
    let lost = knobs["OVERFLOW_AT"].map { $0.split(separator: ",").count } ?? 0
    #expect(driver.summed("overflows") == lost)
    #expect(driver.summed("pictures") == 6 + lost)
    try check(directory)
  }

  @Test(arguments: [
    [:], ["SEGMENTS": "7"], ["PITCH": "odd"], ["OVERFLOW_AT": "1"], ["OVERFLOW_AT": "3"], ["OVERFLOW_AT": "2,3,5"],
    ["OVERFLOW_AT": "3,4,5"],
  ]) func `the same client without a mistake is right in HEVC`(_ knobs: [String: String]) throws {
    let driver = try StrictDriver()
    let directory = driver.directory
    let result = try misuse(driver, ["hevc-none", directory.path("out.hevc"), directory.path("in")], knobs: knobs)
    #expect(result.outputText == "hevc-none: accepted\n")
    #expect(driver.violations.isEmpty)
    let lost = knobs["OVERFLOW_AT"].map { $0.split(separator: ",").count } ?? 0
    #expect(driver.summed("overflows") == lost)
    #expect(driver.summed("pictures") == 6 + lost)
    try check(directory, "hevc")
  }

  @Test func `imported memory is encoded as memory of the driver's own`() throws {
    let driver = try StrictDriver()
    let directory = driver.directory
    let result = try misuse(driver, ["import", directory.path("out.h264"), directory.path("in")])
    #expect(result.outputText == "import: accepted\n")
    #expect(driver.violations.isEmpty)
    try check(directory)
    // VA_STATUS_ERROR_UNSUPPORTED_MEMORY_TYPE, and no mistake of the client's.
    let refused = try misuse(driver, ["import"], knobs: ["IMPORT": "0"])
    #expect(refused.outputText == "import: vaCreateSurfaces returned 36\n")
    #expect(driver.violations.isEmpty)
  }

  @Test(arguments: ["h264", "hevc"]) func `rates change while running`(codec: String) throws {
    let driver = try StrictDriver()
    let directory = driver.directory
    let name = codec == "hevc" ? "hevc-rates" : "rates"
    let result = try misuse(driver, [name, directory.path("out.\(codec)"), directory.path("in")])
    let bytes = result.outputText.split(separator: "\n").compactMap { Double($0.dropFirst("rates: ".count)) }
    try #require(bytes.count == 3, "\(result.outputText)")
    // 150 pictures each: 5 s at 1 Mbit/s, 5 s at 0.25, 10 s at 0.25.
    for (bytes, expected) in zip(bytes, [625_000.0, 156_250, 312_500]) {
      #expect(bytes > expected * 0.75 && bytes < expected * 1.3)
    }
    #expect(driver.violations.isEmpty)
    let pictures = Pictures(width: 318, height: 238, codec: codec)
    let decoded = try pictures.decode(directory.path("out.\(codec)"), to: directory.path("out"), in: directory)
    #expect(decoded.count == 450)
    #expect(decoded.error.isEmpty)
  }

  @Test func `a lost device is back after as many attempts as asked`() throws {
    let driver = try StrictDriver()
    let result = try misuse(driver, ["reopen"], knobs: ["FAIL": "lost", "FAIL_AT": "3", "LOST_REOPENS": "2"])
    let lines = result.outputText.split(separator: "\n")
    #expect(
      lines == [
        "reopen: vaBeginPicture returned 1", "reopen: vaInitialize returned 1", "reopen: vaInitialize returned 1",
        "reopen: accepted",
      ])
    #expect(driver.violations.isEmpty)
  }

  /// Six pictures, all there, all as they were.
  private func check(_ directory: TemporaryDirectory, _ codec: String = "h264") throws {
    let pictures = Pictures(width: 318, height: 238, codec: codec)
    let decoded = try pictures.decode(directory.path("out.\(codec)"), to: directory.path("out"), in: directory)
    #expect(decoded.count == 6)
    #expect(decoded.error.isEmpty)
    #expect(try pictures.worstPSNR(directory.path("in"), directory.path("out"), in: directory) > 38)
  }
}
