import Foundation
import Media
import TestSupport
import Testing

@Suite("VA-API refuses")
struct BadInputTests {
  private static let vendor = "nightjar strict test driver"

  /// Runs the tool, which must end with an error; returns what it says.
  private func refusal(
    _ arguments: [String], knobs: [String: String] = [:], node: String? = nil
  ) throws -> (text: String, kind: String, node: String) {
    let driver = try StrictDriver()
    let run = try driver.encode(arguments, knobs: knobs, node: node)
    #expect(run.status == 3, "\(run.lines) \(run.error)")
    #expect(run.violations == [])
    return (run.values["error"] ?? "", run.values["kind"] ?? "", node ?? driver.node)
  }

  @Test("a node that is none", arguments: ["/dev/null", "/etc/passwd", "/tmp", "/nonexistent", ""])
  func node(_ path: String) throws {
    let refusal = try refusal([], node: path)
    #expect(refusal.kind == "unavailable")
    #expect(refusal.text.contains("node") || refusal.text.contains("directory"), "\(refusal.text)")
  }

  @Test("a node without permission, and names the group", .enabled(if: geteuid() == 0))
  func permission() throws {
    // The tool runs as nobody; only root can have it do so.
    let driver = try StrictDriver()
    chmod(driver.directory.url.path, 0o755)
    chown(driver.node, 0, 44)
    chmod(driver.node, 0o660)
    let copy = driver.directory.path("tool")
    try FileManager.default.copyItem(atPath: StrictDriver.tool, toPath: copy)
    chmod(copy, 0o755)
    let result = try Subprocess.run(
      ["setpriv", "--reuid=65534", "--regid=65534", "--clear-groups", copy, "--node", driver.node],
      in: driver.directory)
    let mend = "add the user to the group video (sudo usermod -aG video nobody)"
    #expect(
      result.outputText.split(separator: "\n")
        == ["error=permission denied on \(driver.node); \(mend)", "kind=noPermission"])
  }

  @Test("a driver without H.264") func noEncoder() throws {
    let refusal = try refusal([], knobs: ["ENTRYPOINT": "none"])
    #expect(refusal.text == "\(Self.vendor) (\(refusal.node)) offers no H.264 encoder")
  }

  @Test("a driver without HEVC") func noHEVC() throws {
    let refusal = try refusal(["--codec", "hevc"], knobs: ["PROFILES": "constrained-baseline,high"])
    #expect(refusal.text == "\(Self.vendor) (\(refusal.node)) offers no HEVC encoder")
  }

  @Test("several slices of HEVC") func slicesOfHEVC() throws {
    let refusal = try refusal(["--codec", "hevc", "--slices", "2"])
    #expect(refusal.kind == "usage" && refusal.text.contains("--slices"), "\(refusal.text)")
  }

  @Test("a profile that the driver lacks, and tells which it has") func profile() throws {
    let text = try refusal(["--profile", "high"], knobs: ["PROFILES": "main,constrained-baseline"]).text
    #expect(text == "\(Self.vendor) does not encode the high profile: choose baseline or main")
  }

  @Test("a driver that lies about its entry points", arguments: ["config", "context", "encode"])
  func lie(_ kind: String) throws {
    let refusal = try refusal([], knobs: ["LIE": kind])
    let function = ["config": "vaCreateConfig", "context": "vaCreateContext", "encode": "vaEndPicture"][kind] ?? ""
    #expect(refusal.text.hasPrefix("VA-API: \(function) failed: "), "\(refusal.text)")
    #expect(refusal.kind == "unavailable")
  }

  @Test("no driver for one lie, where the other entry point is true", arguments: ["config", "context", "encode"])
  func otherEntryPoint(_ kind: String) throws {
    let driver = try StrictDriver()
    let run = try driver.encode(["--frames", "5"], knobs: ["LIE": "\(kind),slice", "ENTRYPOINT": "both"])
    #expect(run.status == 0, "\(run.lines)")
    #expect(run.values["name"]?.contains("EncSliceLP") == true)
    #expect(run.violations == [])
  }

  @Test("a picture that is too large for the driver") func size() throws {
    let text = try refusal(["--size", "1280x720"], knobs: ["MAX_SIZE": "1024x768"]).text
    #expect(text == "cannot encode 1280x720: \(Self.vendor) takes at most 1024x768")
  }

  @Test(
    "impossible values, with the limit",
    arguments: [
      ["--size", "0x0"], ["--size", "641x480"], ["--size", "100000x16"], ["--bitrate", "0"],
      ["--bitrate", "999999999999"], ["--frame-rate", "1000"], ["--rate-control", "52"], ["--rate-control", "0"],
      ["--slices", "0"], ["--slices", "33"], ["--quality", "0"],
    ])
  func values(_ arguments: [String]) throws {
    let refusal = try refusal(arguments)
    #expect(refusal.kind == "usage")
    #expect(refusal.text.contains(arguments[1].split(separator: "x")[0]), "\(refusal.text)")
  }

  @Test("a frame of another size") func frameSize() throws {
    #expect(try refusal(["--frame-size", "320x240"]).text == "a frame of 320x240 for an encoder of 640x480")
  }

  @Test("a frame after stop()") func stopped() throws {
    #expect(try refusal(["--after-stop", "yes", "--frames", "3"]).text == "the encoder was stopped")
  }

  @Test(
    "calls out of order",
    arguments: [
      ("mapInput", EncoderError.order(call: "load(_:)", needs: "mapInput()")),
      ("load", .order(call: "encodeLoaded(keyFrame:deliver:)", needs: "load(_:)")),
    ])
  func order(_ step: String, error: EncoderError) throws {
    let refusal = try refusal(["--without", step])
    #expect(refusal.text == error.description)
    #expect(refusal.kind == "software")
  }

  @Test("nothing, and lists what there is") func capabilities() throws {
    let driver = try StrictDriver()
    let run = try driver.encode(
      ["--capabilities", "yes"], knobs: ["ENTRYPOINT": "both", "RC": "cqp,vbr", "MAX_SIZE": "2048x1152"])
    #expect(run.values["vendor"] == "nightjar strict test driver")
    let encoders = run.lines.filter { $0.hasPrefix("encoder=") }
    #expect(encoders.count == 8)
    #expect(encoders.allSatisfy { $0.contains("VBR+CQP") && $0.contains("2048x1152") && $0.contains("import:true") })
    #expect(encoders.contains { $0.hasPrefix("encoder=high EncSliceLP") })
    #expect(encoders.contains { $0.hasPrefix("encoder=HEVC main EncSliceLP") })
    #expect(run.violations == [])
  }
}
