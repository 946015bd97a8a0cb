import Foundation
import Media
import Platform
import Serving
import Streaming
import TestSupport
import Testing

@testable import Appliance

/// A table of cameras with a clock of its own. What a run would do for an effect is an event of the test.
struct TableDriver {
  var table: CameraTable
  var now = Instant(seconds: 100)
  /// The effects since the last look, but for those that only show the state to others.
  private(set) var effects: [String] = []
  /// The lines since the last look.
  private(set) var lines: [String] = []
  /// The answers of reloads.
  private(set) var answers: [ReloadAnswer] = []
  /// The reason why the parts of a stream do not adopt changes.
  var adoptionFailure: String?

  init(_ text: String) throws {
    table = CameraTable(try Self.configuration(text), isServed: false)
  }

  /// Reads a configuration file with this text.
  static func configuration(_ text: String, arguments: [String] = []) throws -> ApplianceConfiguration {
    let directory = try TemporaryDirectory()
    let path = directory.path("box.toml")
    try text.write(toFile: path, atomically: false, encoding: .utf8)
    return try ApplianceConfiguration.load(
      arguments: ["--config=\(path)"] + arguments, environment: [:], checkSyntax: { _ in })
  }

  mutating func begin() { carryOut(table.begin(at: now)) }

  mutating func handle(_ event: CameraTable.Event) { carryOut(table.handle(event, at: now)) }

  private mutating func carryOut(_ effects: [CameraTable.Effect]) {
    note(effects)
    note(table.handle(.carriedOut, at: now))
  }

  mutating func pass(_ seconds: Double) {
    now = now + Duration(seconds: seconds)
    handle(.tick)
  }

  /// A reload reads `text`; the servers follow at once.
  mutating func reload(
    _ text: String, isServed: Bool = false, _ observations: [Int: CameraTable.Observation] = [:]
  ) throws {
    handle(
      .reload(try Self.configuration(text), isServed: isServed, asked: now, warnings: [], observations))
    handle(.serversFollowed)
  }

  /// The work on a camera opens it, and its stream begins.
  mutating func open(_ number: Int) {
    handle(.workEnded(number, .opened))
    if effects.last == "begin \(number)" { handle(.streams(number)) }
  }

  /// Returns the effects since the last call.
  mutating func take() -> [String] {
    defer { (effects, lines) = ([], []) }
    return effects
  }

  private mutating func note(_ effects: [CameraTable.Effect]) {
    for effect in effects {
      switch effect {
      case .add(let number, let former):
        self.effects.append("add \(number)" + (former.map { " after \($0)" } ?? ""))
      case .remove(let number): self.effects.append("remove \(number)")
      case .open(let number): self.effects.append("open \(number)")
      case .begin(let number): self.effects.append("begin \(number)")
      case .change(let number, let changes):
        self.effects.append("change \(number): \(changes.map(\.name).sorted().joined(separator: " "))")
      case .adopt(let number, _):
        self.effects.append("adopt \(number)")
        note(table.handle(.adopted(number, failure: adoptionFailure), at: now))
      case .release(let number, _): self.effects.append("release \(number)")
      case .close: self.effects.append("close")
      case .keepAlive: self.effects.append("keep alive")
      case .tell(_, let text, _, _): lines.append(text)
      case .answer(let answer): answers.append(answer)
      case .answerWaiters, .publish, .introduce, .follow: break
      }
    }
  }
}

extension ReloadAnswer {
  /// The cameras and what has become of them: `a changed (bitrate: 1M)`.
  var text: [String] {
    cameras.map {
      "\($0.name) \($0.outcome.rawValue)" + ($0.changes.isEmpty ? "" : " (\($0.changes.joined(separator: ", ")))")
    }
  }
}

/// Two cameras that stream to this machine.
private func two(_ first: String = "", _ second: String = "") -> String {
  """
  [[camera]]
  name = "a"
  source = "test"
  to = "rtp://127.0.0.1:6000"
  \(first)
  [[camera]]
  name = "b"
  source = "/dev/video7"
  to = "rtp://127.0.0.1:6002"
  \(second)
  """
}

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

@Suite struct CameraReloadTests {
  /// Two cameras that stream.
  private func streaming(_ text: String = two()) throws -> TableDriver {
    var driver = try TableDriver(text)
    driver.begin()
    driver.open(1)
    driver.open(2)
    _ = driver.take()
    return driver
  }

  @Test func `a reload changes options of a running camera, and leaves the other camera alone`() throws {
    var driver = try streaming()
    try driver.reload(two("bitrate = '900k'\norientation = 180"))
    #expect(driver.take() == ["change 1: bitrate orientation", "close"] && driver.answers.isEmpty)
    driver.handle(.workEnded(1, .changed(complaints: [])))
    #expect(driver.take() == ["adopt 1"])
    #expect(driver.answers.map(\.text) == [["b unchanged", "a changed (bitrate: 900k, orientation: 180)"]])
    // The same once more is no change, nor is another word for the same value.
    try driver.reload(two("bitrate = 900000\norientation = 180"))
    #expect(driver.take() == ["close"] && driver.answers.last?.text == ["a unchanged", "b unchanged"])
  }

  @Test func `what needs another pipeline says so, and only that camera begins anew`() throws {
    var driver = try streaming()
    try driver.reload(two("", "size = '320x240'\nbitrate = '1M'"))
    #expect(driver.lines.first == "restarts, for bitrate, size")
    #expect(driver.take() == ["release 2", "open 2", "close"] && driver.answers.isEmpty)
    driver.open(2)
    #expect(driver.answers.map(\.text) == [["a unchanged", "b restarted (bitrate: 1M, size: 320x240)"]])
  }

  @Test func `a camera that cannot rotate needs another pipeline for that`() throws {
    var driver = try streaming("control = 'none'\n" + two())
    try driver.reload("control = 'none'\n" + two("mirror = true"))
    #expect(driver.take() == ["release 1", "open 1", "close"])
    driver.open(1)
    #expect(driver.answers.last?.text == ["b unchanged", "a restarted (mirror: true)"])
    // The start has decided that nobody can request a rotation. A reload does not.
    try driver.reload(two("mirror = true"))
    #expect(driver.take() == ["begin 1", "close"])
    try driver.reload(two("mirror = false"))
    #expect(driver.take() == ["release 1", "open 1", "close"])
  }

  @Test func `slices that fit one packet follow the packets of a new destination`() throws {
    func camera(_ destination: String) -> String {
      "[[camera]]\nname = 'a'\nsource = 'test'\nslice-size = 'mtu'\nto = 'rtp://127.0.0.1:6000\(destination)'\n"
    }
    var driver = try TableDriver(camera(""))
    driver.begin()
    driver.open(1)
    _ = driver.take()
    try driver.reload(camera("?ttl=3"))
    #expect(driver.take() == ["change 1: to", "close"])
    driver.handle(.workEnded(1, .changed(complaints: [])))
    try driver.reload(camera("?mtu=600"))
    #expect(driver.take().suffix(3) == ["release 1", "open 1", "close"])
  }

  @Test func `the RTSP server decides if encoders rest, so all cameras begin anew`() throws {
    var driver = try streaming()
    try driver.reload("rtsp = true\n" + two(), isServed: true)
    #expect(driver.take() == ["release 1", "release 2", "open 1", "open 2", "close"])
    driver.open(1)
    driver.open(2)
    #expect(driver.answers.map(\.text) == [["a restarted (rtsp)", "b restarted (rtsp)"]])
  }

  @Test func `the sound of a camera gives way to the port of a camera that is added`() throws {
    var driver = try streaming()
    func cameras(_ settings: String) -> String {
      "[[camera]]\nname = 'a'\nsource = 'test'\nto = 'rtp://127.0.0.1:6000'\n\(settings)\n"
        + "[[camera]]\nname = 'c'\nsource = 'test'\nto = 'rtp://127.0.0.1:6004'\n"
    }
    try driver.reload(cameras(""))
    #expect(driver.take() == ["release 2", "change 1: to", "add 3", "remove 2", "open 3", "close"])
    // Without sound there is nothing that could be in the way.
    var silent = try TableDriver(
      "[[camera]]\nname = 'a'\nsource = 'test'\nto = 'rtp://127.0.0.1:6000'\naudio = 'none'\n")
    silent.begin()
    silent.open(1)
    _ = silent.take()
    try silent.reload(cameras("audio = 'none'"))
    #expect(silent.take() == ["add 2", "open 2", "close"])
  }

  @Test func `cameras come and go, and the one that stays is left alone`() throws {
    var driver = try streaming()
    let more = "[[camera]]\nname = 'c'\nsource = 'test'\nto = 'rtp://127.0.0.1:6010'\n"
    let alone = "[[camera]]\nname = 'a'\nsource = 'test'\nto = 'rtp://127.0.0.1:6000'\n"
    try driver.reload(alone + more)
    #expect(driver.lines == ["b: removed from the configuration"])
    #expect(driver.take() == ["release 2", "add 3", "remove 2", "open 3", "close"])
    driver.open(3)
    #expect(driver.answers.map(\.text) == [["b removed", "a unchanged", "c added"]])
    // A camera that is the source of another one is released before that one opens it.
    try driver.reload("[[camera]]\nname = 'd'\nsource = 'test'\nto = 'rtp://127.0.0.1:6000'\n")
    #expect(
      driver.take().filter { !$0.hasPrefix("begin") } == [
        "release 1", "release 3", "add 4 after 1", "remove 1", "remove 3", "open 4", "close",
      ])
  }

  @Test func `a reload undoes changes by nightjar ctl, and searches for a missing destination`() throws {
    var driver = try streaming()
    try driver.reload(two(), [1: .init(controlled: [.setting(.bitrate)]), 2: .init(lacksDestination: true)])
    #expect(driver.take() == ["change 1: bitrate", "change 2: to", "close"])
    driver.handle(.workEnded(1, .changed(complaints: [])))
    driver.handle(.searches(2, true))
    driver.handle(.workEnded(2, .changed(complaints: [])))
    #expect(driver.answers.isEmpty, "the search goes on")
    driver.handle(.complaint(2, "no such host", event: "destination_missing"))
    driver.handle(.searches(2, false))
    #expect(driver.answers.count == 1 && driver.answers[0].warnings == ["b: no such host"])
  }

  @Test func `a change that fails is told, and made again by the next reload`() throws {
    var driver = try streaming()
    try driver.reload(two("bitrate = '900k'"))
    driver.handle(.workEnded(1, .changed(complaints: ["the encoder refuses"])))
    #expect(driver.answers.last?.warnings == ["a: the encoder refuses"])
    _ = driver.take()
    try driver.reload(two("bitrate = '900k'"))
    #expect(driver.take() == ["change 1: bitrate", "close"])
    driver.handle(.workEnded(1, .changed(complaints: [])))
    try driver.reload(two("bitrate = '900k'"))
    #expect(driver.answers.last?.text == ["a unchanged", "b unchanged"])
  }

  @Test func `an answer reports the settings that a stream did not adopt, and a later change tries them again`()
    throws
  {
    var driver = try streaming()
    try driver.reload(two("sdp = '/nowhere/a.sdp'"))
    try driver.reload(two("sdp = '/nowhere/a.sdp'\nbitrate = '900k'"))
    driver.adoptionFailure = "cannot write /nowhere/a.sdp"
    driver.handle(.workEnded(1, .changed(complaints: [])))
    #expect(driver.answers.last?.warnings == nil, "another change follows")
    #expect(driver.take() == ["change 1: sdp", "close", "close", "adopt 1", "change 1: bitrate sdp"])
    driver.adoptionFailure = nil
    driver.handle(.workEnded(1, .changed(complaints: [])))
    #expect(driver.answers.last?.warnings == ["a: cannot write /nowhere/a.sdp"])
    #expect(driver.table[1]?.unmet == [])
  }

  @Test func `a reload during a change or an opening follows it, or makes its result useless`() throws {
    var driver = try streaming()
    try driver.reload(two("bitrate = '900k'"))
    try driver.reload(two("bitrate = '800k'"))
    #expect(driver.take() == ["change 1: bitrate", "close", "close"])
    driver.handle(.workEnded(1, .changed(complaints: [])))
    #expect(driver.take() == ["adopt 1", "change 1: bitrate"])
    // Another size meanwhile: the result of the present change is no longer needed.
    try driver.reload(two("bitrate = '800k'\nsize = '320x240'"))
    _ = driver.take()
    driver.handle(.workEnded(1, .changed(complaints: [])))
    #expect(driver.take() == ["release 1", "open 1", "close"])
    try driver.reload(two("bitrate = '800k'\nsize = '640x480'"))
    driver.handle(.workEnded(1, .opened))
    #expect(driver.take() == ["close", "open 1", "close"], "what was opened in vain does not begin")
    driver.open(1)
    #expect(driver.table[1]?.isStreaming == true && driver.table[1]?.configuration.size?.width == 640)
  }

  @Test func `a camera that hangs while it is opened holds up an answer for seven seconds, and nobody else`() throws {
    var driver = try streaming()
    try driver.reload(two("", "size = '320x240'"))
    driver.pass(6.9)
    #expect(driver.answers.isEmpty)
    driver.pass(0.2)
    #expect(driver.answers.last?.warnings == ["b: it takes long, and continues after this answer"])
    #expect(driver.table.isWaiting(at: driver.now))
    // It is removed, and what becomes of it later is nobody's.
    let alone = "[[camera]]\nname = 'a'\nsource = 'test'\nto = 'rtp://127.0.0.1:6000'\n"
    try driver.reload(alone)
    #expect(driver.answers.last?.cameras.filter { $0.name == "b" }.map(\.outcome) == [.removed])
    _ = driver.take()
    driver.handle(.workEnded(2, .opened))
    #expect(driver.take() == [])
    // A driver that holds a camera for a minute is a reason to let systemd know.
    driver = try streaming()
    try driver.reload(two("", "size = '320x240'"))
    driver.pass(61)
    #expect(!driver.table.isWaiting(at: driver.now))
  }

  @Test func `an answer waits for the servers, and reports their changes`() throws {
    var driver = try streaming()
    driver.handle(
      .reload(try TableDriver.configuration(two()), isServed: false, asked: driver.now, warnings: ["w"], [:]))
    #expect(driver.answers.isEmpty)
    driver.handle(.serverChanged("users changed"))
    driver.handle(.complaint(nil, "HTTP is not changed: port 80"))
    driver.handle(.serversFollowed)
    #expect(driver.answers.first?.server == ["users changed"])
    #expect(driver.answers.first?.warnings == ["w", "HTTP is not changed: port 80"])
    #expect(driver.lines.filter { $0.hasPrefix("reloaded: ") } == ["reloaded: users changed"])
    // Without a reload a complaint is a line.
    driver.handle(.complaint(nil, "HTTP: port 80"))
    #expect(driver.lines.last == "HTTP: port 80")
    // Users that have changed meanwhile are told by the next reload, once.
    driver.handle(.serverChanged("users changed"))
    driver.handle(.serverChanged("users changed"))
    for changes in [["users changed"], []] {
      driver.handle(
        .reload(try TableDriver.configuration(two()), isServed: false, asked: driver.now, warnings: [], [:]))
      driver.handle(.serversFollowed)
      #expect(driver.answers.last?.server == changes)
    }
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
