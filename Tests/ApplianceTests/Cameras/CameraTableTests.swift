import Appliance
import Platform
import Streaming
import Testing

@Suite struct CameraRetryTests {
  @Test func `each of several cameras is opened, and one that fails is tried again after 1, 2, 4, … 60 s`() throws {
    var driver = try TableDriver(two())
    driver.begin()
    #expect(driver.take() == ["open 1", "open 2"])
    driver.open(1)
    #expect(driver.take() == ["begin 1"])
    for (index, seconds) in [1.0, 2, 4, 8, 16, 32, 60, 60].enumerated() {
      driver.handle(.workEnded(2, .failed("no such camera")))
      // The same reason is no news.
      #expect(driver.lines == (index == 0 ? ["no such camera; nightjar tries again"] : []))
      #expect(driver.table.deadline == driver.now + Duration(seconds: seconds))
      #expect(driver.table[2]?.absence == "no such camera" && driver.table.isWaiting(at: driver.now))
      driver.pass(seconds - 0.1)
      #expect(driver.take() == [])
      driver.pass(0.1)
      #expect(driver.take() == ["open 2"] && driver.table.deadline == nil)
    }
    driver.open(2)
    #expect(driver.table[2]?.absence == nil)
    _ = driver.take()
    // After a minute of streaming the next failure is the first again.
    driver.pass(61)
    driver.handle(.ended(2, failure: "it is gone"))
    #expect(driver.lines == ["it is gone; nightjar tries again"])
    #expect(driver.table.deadline == driver.now + Duration(seconds: 1))
    #expect(driver.table[1]?.isStreaming == true)
  }

  @Test func `a camera whose stream cannot begin is tried again too`() throws {
    var driver = try TableDriver(two())
    driver.begin()
    driver.handle(.workEnded(1, .opened))
    driver.handle(.workFailed(1, "no thread"))
    #expect(driver.lines == ["no thread; nightjar tries again"] && driver.table.deadline != nil)
    driver.pass(1)
    #expect(driver.take() == ["open 1", "open 2", "begin 1", "open 1"])
  }

  @Test func `the program ends with its only camera, and of several with the last source`() throws {
    let one = try TableDriver("source = 'test'")
    #expect(one.table.endsWithItsCamera)
    var driver = try TableDriver(two())
    driver.begin()
    driver.open(1)
    driver.open(2)
    _ = driver.take()
    #expect(!driver.table.endsWithItsCamera)
    driver.handle(.ended(1, failure: nil))
    #expect(!driver.table.isOver && driver.table[1]?.absence == "its source has ended")
    driver.handle(.ended(2, failure: nil))
    #expect(driver.table.isOver)
  }

  @Test func `a reload that takes away the last camera that streams ends the program`() throws {
    var driver = try TableDriver(two())
    driver.begin()
    driver.open(1)
    driver.open(2)
    driver.handle(.ended(1, failure: nil))
    try driver.reload("[[camera]]\nname = 'a'\nsource = 'test'\nto = 'rtp://127.0.0.1:6000'\n")
    #expect(driver.table.isOver && driver.answers.last?.text == ["b removed", "a unchanged"])
  }

  @Test func `the first three of several cameras keep standby encoders`() throws {
    let text = (0..<5).map { "[[camera]]\nname = 'c\($0)'\nsource = 'test'\nto = 'rtp://127.0.0.1:\(6000 + 2 * $0)'\n" }
    var driver = try TableDriver(text.joined())
    driver.begin()
    #expect(driver.table.entries.map(\.keepsStandby) == [true, true, true, false, false])
  }
}

@Suite struct CameraWatchdogTests {
  private static let limit = Duration(seconds: 10)

  /// Looks each second for `seconds`; the cameras of `numbers` get a frame further each time.
  private func watch(_ driver: inout TableDriver, seconds: Int, moving numbers: Set<Int>, from start: Int) {
    for second in 0..<seconds {
      driver.now = driver.now + Duration(seconds: 1)
      var all: [Int: PipelineProgress] = [:]
      for entry in driver.table.entries where entry.isStreaming {
        var progress = PipelineProgress()
        let frames = numbers.contains(entry.number) ? start + second : start
        (progress.captured, progress.encoded, progress.queued, progress.sent) = (frames, frames, frames, frames)
        all[entry.number] = progress
      }
      driver.handle(
        .progress(all, frameIntervals: all.mapValues { _ in Duration(seconds: 0.04) }, limit: Self.limit))
    }
  }

  @Test func `the only camera, if it stands still, stops the sign of life until it continues`() throws {
    var driver = try TableDriver("source = 'test'")
    driver.table.beginAlone(at: driver.now)
    watch(&driver, seconds: 5, moving: [1], from: 1)
    #expect(driver.take() == Array(repeating: "keep alive", count: 5))
    watch(&driver, seconds: 20, moving: [], from: 5)
    #expect(
      driver.lines.count == 1
        && driver.lines[0].hasPrefix("capture stands still: no frame has come; if it does not continue, "))
    #expect(driver.take().count == 9, "no sign of life from the limit on")
    watch(&driver, seconds: 2, moving: [1], from: 6)
    #expect(driver.lines == ["capture continues"] && driver.take().count == 2)
  }

  @Test func `a stalled camera among several restarts, twice at once and then after pauses`() throws {
    var driver = try TableDriver(two())
    driver.begin()
    driver.open(1)
    driver.open(2)
    _ = driver.take()
    for standstill in 1...3 {
      watch(&driver, seconds: 11, moving: [1], from: 100 * standstill)
      let effects = driver.take().filter { $0 != "keep alive" }
      #expect(effects == ["release 2", "close"] + (standstill <= 2 ? ["open 2"] : []), "\(standstill)")
      if standstill <= 2 { driver.open(2) }
      _ = driver.take()
    }
    #expect(driver.table[2]?.absence == "it stands still again and again")
    #expect(driver.table.deadline == driver.now + Duration(seconds: 1))
    // The other camera streams: systemd hears of it.
    watch(&driver, seconds: 2, moving: [1], from: 1000)
    #expect(driver.take().filter { $0 == "keep alive" }.count == 2)
    #expect(!driver.table.isWaiting(at: driver.now))
    driver.pass(1)
    #expect(driver.take() == ["open 2"])
    driver.open(2)
    driver.pass(61)
    #expect(driver.table[2]?.standstills == 0, "a minute of streaming makes up for it")
  }
}
