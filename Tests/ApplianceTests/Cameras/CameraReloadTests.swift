import Appliance
import Media
import Platform
import Serving
import Testing

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
