import Foundation
import TestSupport
import Testing

/// Faults on demand: each knob must do what it says, or the tests of fail-over prove nothing.
@Suite struct InjectionTests {
  let driver: StrictDriver
  let pictures = Pictures(width: 640, height: 480)

  init() throws {
    driver = try StrictDriver()
    try pictures.make(10, at: driver.directory.path("in"), in: driver.directory)
  }

  private func encode(_ knobs: [String: String], _ options: [String] = ["-qp", "20"]) throws -> Subprocess.Result {
    try driver.encode(pictures, options, knobs: knobs)
  }

  /// The call that fails, and the pictures that were encoded before it.
  @Test(arguments: [
    ("error", "Failed to end picture encode issue: 1", 4), ("begin", "Failed to begin picture encode issue: 1", 4),
    ("render", "Failed to upload encode parameters: 1", 4), ("lost", "Failed to begin picture encode issue: 1", 4),
    ("sync", "Failed to sync to", 5), ("map", "Failed to map output buffers: 1", 5),
  ]) func `a call fails at the picture asked for`(_ call: String, _ message: String, _ count: Int) throws {
    let result = try encode(["FAIL": call, "FAIL_AT": "5"], ["-qp", "20", "-async_depth", "1"])
    #expect(result.status != 0)
    #expect(result.error.contains(message), "\(result.error)")
    #expect(driver.summed("pictures") >= count)
    #expect(driver.summed("pictures") <= count + 1)
    // ffmpeg ends a picture even if it did not begin.
    #expect(driver.violations.allSatisfy { call == "begin" && $0.hasPrefix("violation: not-begun: vaEndPicture") })
  }

  @Test func `vaInitialize fails`() throws {
    #expect(try encode(["FAIL": "init", "FAIL_AT": "1"]).status != 0)
    #expect(driver.log.isEmpty)
  }

  @Test func `a hang ends after its time and loses nothing`() throws {
    let start = Date()
    let result = try encode(["HANG_AT": "3", "HANG_IN": "sync", "HANG_SECONDS": "1.5"])
    #expect(result.status == 0, "\(result.error)")
    #expect(Date().timeIntervalSince(start) > 1.5)
    #expect(driver.summed("pictures") == 10)
  }

  @Test(arguments: ["derive", "begin", "render", "end", "sync", "map"])
  func `a hang without end stays one until the control file ends it`(_ call: String) throws {
    let control = driver.directory.path("control")
    let process = try Subprocess(
      driver.encodeCommand(pictures, ["-qp", "20"]), in: driver.directory,
      environment: driver.environment(["HANG_AT": "3", "HANG_IN": call, "CONTROL": control]))
    // ffmpeg alone takes a small part of this.
    usleep(2_500_000)
    #expect(process.isRunning)
    // The driver looks every few milliseconds, and would see a file that is not written yet.
    try Data("hang=none\n".utf8).write(to: URL(fileURLWithPath: control), options: .atomic)
    #expect(try process.wait().status == 0)
    #expect(driver.summed("pictures") == 10)
    #expect(driver.violations.isEmpty)
  }

  @Test func `the control file makes the next picture fail`() throws {
    try Data("fail=end\n".utf8).write(to: driver.directory.url.appendingPathComponent("control"))
    let result = try encode(["CONTROL": driver.directory.path("control")])
    #expect(result.status != 0)
    #expect(driver.summed("pictures") == 0)
  }

  @Test func `a slow device takes its time for each picture`() throws {
    let start = Date()
    #expect(try encode(["SLOW_MS": "150"]).status == 0)
    #expect(Date().timeIntervalSince(start) > 1.5)
  }

  @Test func `lost coded data are told by the status bit, and ffmpeg goes on regardless`() throws {
    #expect(try encode(["OVERFLOW_AT": "5"], ["-qp", "20", "-async_depth", "1"]).status != 0)
    #expect(driver.violations.count == 1)
    #expect(driver.violations.first?.hasPrefix("violation: overflow-ignored") == true)
    #expect(driver.summed("overflows") == 1)
  }

  @Test func `coded data above the limit are cut off there`() throws {
    #expect(try encode(["CODED_LIMIT": "1000"], ["-qp", "20", "-async_depth", "1"]).status != 0)
    #expect(driver.summed("overflows") == 1)
    #expect(driver.summed("bytes") == 1000)
  }

  @Test func `rubbish for a picture is no stream`() throws {
    #expect(try encode(["GARBAGE": "1"]).status == 0)
    let decoded = try pictures.decode(
      driver.directory.path("out.h264"), to: driver.directory.path("out"), in: driver.directory)
    #expect(!decoded.error.isEmpty)
  }

  /// Abilities that are offered but not there, and those that are not offered.
  @Test(arguments: [
    (["LIE": "config"], "Failed to create encode pipeline configuration"),
    (["LIE": "context"], "Failed to create encode pipeline context"),
    (["LIE": "encode"], "Failed to end picture encode issue"),
    (["ENTRYPOINT": "none"], "No usable encoding profile found"),
    (["MAX_SIZE": "320x240"], "Hardware does not support encoding at size 640x480"),
    (["RC": "cbr"], "Driver does not support CQP RC mode"),
  ]) func `a missing feature is refused at the right call`(_ knobs: [String: String], _ message: String) throws {
    let result = try encode(knobs)
    #expect(result.status != 0)
    #expect(result.error.contains(message), "\(result.error)")
    #expect(driver.violations.isEmpty)
  }

  @Test func `a lie about one entry point leaves the other`() throws {
    let knobs = ["ENTRYPOINT": "both", "LIE": "config,slice"]
    #expect(try encode(knobs).status != 0)
    #expect(try encode(knobs, ["-qp", "20", "-low_power", "1"]).status == 0)
    #expect(driver.summed("pictures") == 10)
  }

  @Test func `only the profiles listed exist`() throws {
    #expect(try encode(["PROFILES": "main"], ["-qp", "20", "-profile:v", "high"]).status != 0)
    #expect(try encode(["PROFILES": "main"], ["-qp", "20", "-profile:v", "main"]).status == 0)
  }
}
