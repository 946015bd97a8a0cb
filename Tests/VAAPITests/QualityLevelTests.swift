import TestSupport
import Testing

/// The quality level of a running encoder, which the driver counts.
@Suite("The quality level") struct QualityLevelTests {
  /// Frames of 30 a second. Without requests there is one key frame, the first.
  private func encode(
    _ changes: [String], frames: Int = 30, quality: Int? = 4, keyInterval: Int = 0, _ driver: StrictDriver,
    knobs: [String: String] = [:]
  ) throws -> StrictDriver.Run {
    var arguments = ["--rate-control", "cbr", "--frames", "\(frames)", "--key-interval", "\(keyInterval)"]
    if let quality { arguments += ["--quality", "\(quality)"] }
    for change in changes { arguments += ["--quality-change", change] }
    let run = try driver.encode(arguments, knobs: knobs)
    #expect(run.status == 0, "\(run.lines)")
    #expect(run.violations == [])
    #expect(run.number("delivered") == frames)
    #expect(run.number("set-changes") == 0)
    #expect(try driver.decodingErrors() == "")
    #expect(try driver.probe()["nb_read_frames"] == "\(frames)")
    // No level ever begins with another picture than a key frame.
    #expect(run.summed("between") == 0)
    return run
  }

  @Test("that is faster begins with the next picture, a key frame", arguments: ["h264", "hevc"], ["all", "none"])
  func faster(codec: String, packed: String) throws {
    let driver = try StrictDriver(codec: codec)
    let run = try encode(["10,7"], driver, knobs: ["PACKED": packed])
    #expect(run.values["keyframes"] == "0,10")
    #expect(run.values["levels"] == "7 of 7" && run.number("level-at-end") == 7)
    // The first one is that of the start.
    #expect(run.summed("levels") == 2 && run.summed("last") == 7)
  }

  @Test("that is better begins with the next key frame that is due", arguments: ["h264", "hevc"])
  func better(codec: String) throws {
    let driver = try StrictDriver(codec: codec)
    let run = try encode(["3,1"], keyInterval: 20, driver)
    #expect(run.values["keyframes"] == "0,20")
    #expect(run.values["levels"] == "1 of 7")
    #expect(run.summed("levels") == 2 && run.summed("last") == 1)
    let early = try encode(["3,1"], frames: 20, keyInterval: 20, driver)
    #expect(early.values["levels"] == "4 of 7" && early.summed("levels") == 1)
  }

  @Test("that is better waits ten seconds of frames at most") func patience() throws {
    let driver = try StrictDriver()
    let run = try encode(["5,1"], frames: 330, driver)
    #expect(run.values["keyframes"] == "0,305")
    #expect(run.summed("last") == 1)
  }

  @Test("is the last one that was requested before its key frame") func latest() throws {
    let driver = try StrictDriver()
    // The better one is taken back before it begins: nothing changes, and no key frame comes.
    let back = try encode(["3,1", "5,4"], driver)
    #expect(back.values["keyframes"] == "0" && back.summed("levels") == 1)
    // From the better one that has not begun to one between: that is better too, and waits.
    let between = try encode(["3,1", "5,3"], keyInterval: 20, driver)
    #expect(between.values["keyframes"] == "0,20" && between.summed("last") == 3)
    let faster = try encode(["3,1", "5,6"], keyInterval: 20, driver)
    #expect(faster.values["keyframes"] == "0,5,20" && faster.summed("last") == 6)
  }

  @Test("of the driver's own choice is no hurry to leave, and comes back by 0") func own() throws {
    let driver = try StrictDriver()
    let run = try encode(["3,7", "22,0"], frames: 60, quality: nil, keyInterval: 20, driver)
    #expect(run.values["keyframes"] == "0,20,40")
    #expect(run.values["levels"] == "0 of 7" && run.number("level-at-end") == 0)
    #expect(run.summed("levels") == 2 && run.summed("last") == 0)
  }

  @Test("is limited to the driver's, and is none with one level or none", arguments: ["0", "1", "4"])
  func limits(offered: String) throws {
    let driver = try StrictDriver()
    let run = try encode(["3,9", "6,2"], driver, knobs: ["QUALITY": offered])
    #expect(run.values["levels"] == (offered == "4" ? "4 of 4" : "none"))
    // At level 4 of 4 there is no faster one, and a better one waits.
    #expect(run.values["keyframes"] == "0")
  }

  @Test(
    "stays where a driver refuses another, and no picture is missing", arguments: ["h264", "hevc"], ["all", "none"])
  func refused(codec: String, packed: String) throws {
    let driver = try StrictDriver(codec: codec)
    let knobs = ["QUALITY_FIXED": "1", "PACKED": packed]
    let run = try encode(["10,7", "15,6"], driver, knobs: knobs)
    // The key frame for it is coded with the former level, and the second request changes nothing.
    #expect(run.values["keyframes"] == "0,10")
    #expect(run.values["levels"] == "4 of 7, fixed" && run.number("level-at-end") == 4)
    #expect(run.summed("levels") == 1 && run.summed("last") == 4)
  }

  @Test("is not chosen where the driver's numbers are no scale") func bits() throws {
    let driver = try StrictDriver()
    let mesa = ["VENDOR": "Mesa Gallium driver 23.2.1 for AMD Radeon Graphics", "QUALITY": "32"]
    let run = try encode(["10,7"], quality: nil, driver, knobs: mesa)
    #expect(run.values["levels"] == "none" && run.values["keyframes"] == "0" && run.summed("levels") == 0)
    // The one that is configured is told.
    #expect(try encode([], quality: 5, driver, knobs: mesa).summed("last") == 5)
  }

  @Test("stays with a change of the rate, which tells it again") func rates() throws {
    let driver = try StrictDriver()
    let run = try driver.encode(
      [
        "--rate-control", "cbr", "--frames", "40", "--quality", "4", "--quality-change", "5,2", "--change",
        "10,1000000,30", "--key-interval", "30",
      ])
    #expect(run.violations == [] && run.summed("between") == 0)
    #expect(run.values["keyframes"] == "0,30" && run.summed("last") == 2)
  }
}
