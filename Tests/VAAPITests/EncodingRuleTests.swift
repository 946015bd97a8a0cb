import Foundation
import TestSupport
import Testing

@Suite("VA-API encoding")
struct EncodingRuleTests {
  @Test("codes a picture that overflows again, in its place", arguments: pairs(["20", "cbr"], ["all", "none"]))
  func overflow(control: String, packed: String) throws {
    // The driver counts the two pictures of `prepare()` too: 3 is the first IDR, 4 its second try, 8 and 9 one P.
    let driver = try StrictDriver()
    let run = try driver.encode(
      ["--rate-control", control, "--frames", "20"], knobs: ["OVERFLOW_AT": "3,8,9", "PACKED": packed])
    #expect(run.status == 0, "\(run.lines)")
    #expect(run.violations == [])
    #expect(run.number("overflows") == 2)
    #expect(run.values["keyframes"] == "0")
    #expect(try driver.decodingErrors() == "")
    #expect(try driver.probe()["nb_read_frames"] == "20")
    #expect(try driver.quality("640x480").lowest > 28)
  }

  @Test("gives up on a picture that never fits") func hopeless() throws {
    let driver = try StrictDriver()
    let run = try driver.encode(
      ["--rate-control", "20", "--frames", "3", "--prepare", "no"], knobs: ["CODED_LIMIT": "100"])
    #expect(run.status == 3)
    #expect(run.values["error"]?.contains("does not fit") == true, "\(run.lines)")
    #expect(run.violations == [])
  }

  @Test("changes the rate without an IDR or another SPS", arguments: pairs(["cbr", "vbr"], ["cbr,vbr", "cqp"]))
  func change(control: String, offered: String) throws {
    let driver = try StrictDriver()
    let before = try driver.encode(
      ["--rate-control", control, "--bitrate", "500000", "--frames", "60"], knobs: ["RC": offered])
    let run = try driver.encode(
      ["--rate-control", control, "--bitrate", "500000", "--frames", "120", "--change", "60,4000000,30"],
      knobs: ["RC": offered])
    #expect(run.status == 0, "\(run.lines)")
    #expect(run.violations == [])
    #expect(run.values["keyframes"] == "0")
    #expect(run.number("set-changes") == 0)
    #expect(run.values["sps"] == run.values["sets-at-end"])
    #expect(try driver.decodingErrors() == "")
    // The strict driver's VBR is x264's ABR, which has no other rate once it runs: there it only has to be accepted.
    guard control == "cbr" || offered == "cqp" else { return }
    // The same 60 frames, and 60 at eight times the rate.
    let first = try #require(before.number("bytes"))
    let all = try #require(run.number("bytes"))
    #expect(all - first > 2 * first, "\(first) bytes before the change, \(all) in all")
  }

  @Test("gives a new frame rate its share of bits") func frameRate() throws {
    let driver = try StrictDriver()
    let arguments = ["--rate-control", "cbr", "--bitrate", "1000000", "--frames", "150"]
    let fast = try driver.encode(arguments + ["--change", "30,1000000,30"])
    let slow = try driver.encode(arguments + ["--change", "30,1000000,10"])
    #expect(fast.violations + slow.violations == [])
    let (fastBytes, slowBytes) = (try #require(fast.number("bytes")), try #require(slow.number("bytes")))
    #expect(slowBytes > fastBytes * 3 / 2, "\(fastBytes) and \(slowBytes) bytes")
  }

  @Test("imports DMA-BUFs and copies where it cannot", arguments: pairs([true, false], ["640x480", "1918x1078"]))
  func importing(imports: Bool, size: String) throws {
    let driver = try StrictDriver()
    let run = try driver.encode(
      ["--size", size, "--rate-control", "20", "--frames", "12", "--export", "yes"],
      knobs: ["IMPORT": imports ? "1" : "0"])
    #expect(run.status == 0, "\(run.lines)")
    #expect(run.violations == [])
    #expect(run.number("imported") == (imports ? 12 : 0))
    #expect(run.number("copied") == (imports ? 0 : 12))
    #expect(try driver.decodingErrors() == "")
    #expect(try driver.quality(size).lowest > 38)
  }

  @Test("copies where the driver does not encode what it imports") func importedInVain() throws {
    let driver = try StrictDriver()
    // 3 is the first picture after the two of `prepare()`.
    let run = try driver.encode(
      ["--rate-control", "20", "--frames", "12", "--export", "yes"], knobs: ["FAIL": "end", "FAIL_AT": "3"])
    #expect(run.status == 0, "\(run.lines)")
    #expect(run.violations == [])
    #expect(run.number("imported") == 0 && run.number("copied") == 12)
    #expect(run.values["keyframes"] == "0")
    #expect(try driver.decodingErrors() == "")
    #expect(try driver.quality("640x480").lowest > 38)
  }

  @Test(
    "goes on with an IDR after a call that failed",
    arguments: pairs(["begin", "render", "end", "sync", "map", "derive"], ["all", "none"]))
  func failing(call: String, packed: String) throws {
    let driver = try StrictDriver()
    let run = try driver.encode(
      ["--rate-control", "20", "--frames", "12", "--go-on", "yes"],
      knobs: ["FAIL": call, "FAIL_AT": "7", "PACKED": packed])
    #expect(run.status == 0, "\(run.lines)")
    #expect(run.violations == [])
    #expect(run.failures.count == 1)
    #expect(run.failures.first?.hasPrefix("failed=4 VA-API: va") == true, "\(run.failures)")
    #expect(run.failures.first?.hasSuffix("failed: operation failed (code 1)") == true)
    // A picture that never reached the driver leaves the stream whole.
    #expect(run.values["keyframes"] == (call == "derive" ? "0" : "0,5"))
    #expect(run.number("delivered") == 11)
    #expect(try driver.decodingErrors() == "")
    #expect(try driver.probe()["nb_read_frames"] == "11")
  }

  @Test("does not pass a broken picture on", arguments: ["all", "none"]) func garbage(packed: String) throws {
    let driver = try StrictDriver()
    let run = try driver.encode(
      ["--rate-control", "20", "--frames", "12", "--go-on", "yes"], knobs: ["GARBAGE": "7", "PACKED": packed])
    #expect(run.failures.count == 1, "\(run.lines)")
    #expect(run.values["keyframes"] == "0,5")
    #expect(run.violations == [])
    #expect(try driver.decodingErrors() == "")
  }

  @Test("fails for as long as a device is lost, and frees it without complaint") func lost() throws {
    let driver = try StrictDriver()
    let run = try driver.encode(
      ["--frames", "10", "--go-on", "yes"], knobs: ["FAIL": "lost", "FAIL_AT": "7"])
    #expect(run.status == 0, "\(run.lines)")
    #expect(run.failures.count == 6)
    #expect(run.violations == [])
  }

  @Test("writes the same stream with and without prepare()") func preparing() throws {
    let driver = try StrictDriver()
    for packed in ["all", "none"] {
      let arguments = ["--rate-control", "24", "--frames", "8", "--prepare"]
      let knobs = ["PACKED": packed]
      let cold = try driver.encode(arguments + ["no"], knobs: knobs)
      let warm = try driver.encode(arguments + ["yes"], knobs: knobs)
      #expect(cold.violations + warm.violations == [])
      #expect(cold.values["keyframes"] == "0" && warm.values["keyframes"] == "0")
      // `idr_pic_id` differs, and nothing else.
      let difference = try #require(cold.number("bytes")) - (try #require(warm.number("bytes")))
      #expect(abs(difference) <= 8)
      #expect(try driver.decodingErrors() == "")
    }
  }

  @Test("takes a quality level beyond the driver's as its last one") func quality() throws {
    let driver = try StrictDriver()
    for offered in ["0", "4"] {
      let run = try driver.encode(["--quality", "7", "--frames", "4"], knobs: ["QUALITY": offered])
      #expect(run.status == 0, "\(run.lines)")
      #expect(run.violations == [])
    }
  }

  @Test(
    "costs no memory and little time a frame", arguments: runsLong ? ["all", "none"] : ["all"],
    ["derive", "put", "import", "turned derive", "turned put", "turned import"])
  func overhead(packed: String, upload: String) throws {
    let driver = try StrictDriver()
    let meter = driver.directory.path("meter.so")
    let source =
      packageRoot
      .appendingPathComponent("Tests/VAEncodeTool/Meter/meter.c").path
    let compilation = try Subprocess.run(
      ["cc", "-O2", "-Wall", "-Wextra", "-Werror", "-shared", "-fPIC", "-o", meter, source, "-ldl"],
      in: driver.directory)
    try #require(compilation.status == 0, "\(compilation.error)")
    let run = try driver.encode(
      [
        "--size", "1280x720", "--bitrate", "3000000", "--frames", "60", "--slices", "4", "--export",
        upload.hasSuffix("import") ? "yes" : "no",
      ] + (upload.hasPrefix("turned") ? ["--orientation", "90"] : []),
      knobs: ["PACKED": packed, "DERIVE": upload.hasSuffix("put") ? "0" : "1"], preload: [meter])
    #expect(run.status == 0, "\(run.lines) \(run.error)")
    #expect(run.number("turned") == (upload.hasPrefix("turned") ? 60 : 0))
    #expect(run.number("steady-allocations") == 0)
    // The goal is 20 µs in a release build on an idle machine.
    #expect(try #require(run.number("overhead-ns")) < 500_000)
  }
}
