#if X264
  import Foundation
  import TestSupport
  import Testing

  /// The page, as Chromium shows it.
  @Suite(.serialized) struct BrowserTests {
    /// What the page's connection has received of sound.
    private static let sound = """
      (async () => { for (const report of (await nightjar.connection.getStats()).values())
        if (report.type === "inbound-rtp" && report.kind === "audio") return report.totalAudioEnergy; })()
      """

    @Test func `a phone's browser shows the picture and plays the sound`() throws {
      let program = try WatchedProgram(["--audio", "test"])
      let browser = try Browser(in: program.directory)
      try browser.open(program.url("/"))
      let plays = eventually(within: 60) { browser.pictures > 30 }
      #expect(plays, "\(browser.page) \(program.process.errorSoFar)")
      #expect(browser.number("document.querySelector('video').videoWidth") == 320)
      #expect(browser.text("document.querySelector('[role=status]').textContent") == "Live")
      // A browser plays no sound before a touch, and the page says so.
      #expect(browser.isTrue("document.querySelector('video').muted"))
      try browser.click("Turn the sound on")
      #expect(!browser.isTrue("document.querySelector('video').muted"))
      let hears = eventually(within: 30) { (browser.number(Self.sound) ?? 0) > 0.001 }
      #expect(hears, "\(browser.number(Self.sound) ?? -1)")
      #expect(try browser.console() == [])

      // A turn comes in the stream: the session stays.
      try browser.run("window.before = nightjar.connection")
      _ = try program.control("rotate", "90")
      let isTurned = eventually(within: 30) { browser.number("document.querySelector('video').videoWidth") == 240 }
      #expect(isTurned && browser.isTrue("window.before === nightjar.connection"))

      let viewers = try program.control("viewers")
      #expect(viewers.contains("webrtc"), "\(viewers)")
      // Closed, the page says goodbye.
      try browser.open("about:blank")
      let isGone = eventually(within: 30) { program.process.errorSoFar.contains("left camera after") }
      #expect(isGone, "\(program.process.errorSoFar)")
    }

    @Test func `a dead line rings until somebody has heard it, and comes back by itself`() throws {
      let program = try WatchedProgram()
      let browser = try Browser(in: program.directory)
      try browser.open(program.url("/"))
      try #require(eventually(within: 60) { browser.pictures > 10 }, "\(browser.page)")
      try browser.click("Wake me if the line fails")
      #expect(!browser.isTrue("nightjar.alarm.isSounding"))
      program.process.send(SIGSTOP)
      let rings = eventually(within: 50) { browser.isTrue("nightjar.alarm.isSounding") }
      #expect(rings, "\(browser.page)")
      #expect(eventually(within: 30) { browser.page.contains("does not answer") }, "\(browser.page)")
      program.process.send(SIGCONT)
      let pictures = browser.pictures
      let isBack = eventually(within: 60) { browser.text("nightjar.state") == "live" && browser.pictures > pictures }
      #expect(isBack, "\(browser.page)")
      // The person has not said yet that she is awake.
      #expect(browser.isTrue("nightjar.alarm.isSounding"))
      try browser.click("I am awake")
      #expect(!browser.isTrue("nightjar.alarm.isSounding"))
      #expect(browser.isTrue("nightjar.alarm.isArmed"))
    }

    @Test func `nobody watches without a log-in`() throws {
      let program = try WatchedProgram(users: ["anna": "correct horse"])
      let browser = try Browser(in: program.directory)
      try browser.open(program.url("/"))
      func logIn(_ password: String) throws {
        try #require(eventually { browser.isTrue("document.querySelector('input[name=username]')") }, "\(browser.page)")
        try browser.run(
          "for (const field of document.querySelectorAll('input')) if (field.type !== 'checkbox') field.value = ''")
        try browser.type("anna", into: "username")
        try browser.type(password, into: "password")
        try browser.click("Log in")
      }
      try logIn("wrong horse")
      let isRefused = eventually { browser.page.contains("not known here") }
      #expect(isRefused, "\(browser.page)")
      try logIn("correct horse")
      let plays = eventually(within: 60) { browser.pictures > 10 }
      #expect(plays, "\(browser.page) \(program.process.errorSoFar)")
      // The next visit needs no log-in.
      try browser.open("about:blank")
      try browser.open(program.url("/"))
      #expect(eventually(within: 60) { browser.pictures > 10 }, "\(browser.page)")
      try browser.click("Log out")
      #expect(eventually { browser.isTrue("document.querySelector('input[name=username]')") })
    }
  }
#endif
