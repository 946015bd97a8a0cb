#if X264
  import Foundation
  import TestSupport
  import Testing

  /// The page's alarm, for each cause, heard where the loudspeaker gets it. `SoundDriverTests` has the microphone.
  @Suite(.serialized) struct PageAlarmTests {
    @Test func `the alarm sounds for pictures, sound and network that no longer come, and says which`() throws {
      let port = try UDPPort.free()
      let program = try WatchedProgram(["--audio", "test", "--webrtc-port", "\(port)"])
      let relay = try UDPRelay(to: port, in: program.directory)
      let browser = try Browser(in: program.directory)
      let watch = "setInterval(() => { window.wasDead ||= window.nightjar?.state === 'dead'; }, 50);"
      try browser.inject(try PageFaults.script(last: "faults.relay = \(relay.port); \(watch)"))
      try browser.open(program.url("/"))
      // A line that is dead by now, if only because the host is busy, rings at once.
      let isLive = eventually(within: 60) { browser.pictures > 10 && browser.text("nightjar.state") == "live" }
      try #require(isLive, "\(browser.page)")
      try browser.run("window.wasDead = false")
      try browser.click("Wake me if the line fails")
      #expect(eventually { browser.isTrue("nightjar.alarm.isArmed") })
      // One that dies now, because the host stands still, rings a second later.
      #expect(browser.alarm.peak == 0 || browser.isTrue("window.wasDead"))

      func provoke(_ fault: () throws -> Void, says words: String, then mend: () throws -> Void) throws {
        try fault()
        let isHeard = browser.alarmSounds()
        #expect(isHeard, "\(words): \(browser.page)")
        let isSaid = eventually(within: 50) { browser.text("document.querySelector('.dialog p').textContent") == words }
        #expect(isSaid, "\(browser.page)")
        try mend()
        let isBack = eventually(within: 60) { browser.text("nightjar.state") == "live" }
        #expect(isBack, "\(words): \(browser.page)")
        // A line that is back does not end the alarm: a person does.
        #expect(browser.alarmSounds())
        try browser.click("I am awake")
        #expect(eventually { browser.alarm.peak == 0 })
        #expect(browser.isTrue("nightjar.alarm.isArmed"))
      }
      try provoke(
        { try relay.lose(.video) }, says: "The picture stands still.", then: { try relay.lose(.nothing) })
      try provoke({ try relay.lose(.audio) }, says: "No sound comes any more.", then: { try relay.lose(.nothing) })
      func setOffline(_ isOffline: Bool) throws {
        try browser.command(
          "Network.emulateNetworkConditions",
          ["offline": isOffline, "latency": 0, "downloadThroughput": -1, "uploadThroughput": -1])
      }
      try browser.command("Network.enable")
      try provoke(
        {
          try setOffline(true)
          try relay.lose(.everything)
        }, says: "This device has no network.",
        then: {
          try setOffline(false)
          try relay.lose(.nothing)
        })
    }

    @Test func `an alarm that is armed before any picture has come rings if none comes`() throws {
      let port = try UDPPort.free()
      let program = try WatchedProgram(["--audio", "test", "--webrtc-port", "\(port)"])
      let relay = try UDPRelay(to: port, in: program.directory)
      try relay.lose(.everything)
      let browser = try Browser(in: program.directory)
      // Pictures one by one do not come either, though the host answers.
      let holds = """
        faults.relay = \(relay.port);
        const served = window.fetch;
        window.fetch = (path, ...rest) =>
          String(path).includes("stream.mjpg") ? new Promise(() => {}) : served(path, ...rest);
        window.states = [];
        setInterval(() => {
          const state = window.nightjar?.state;
          if (state && states.at(-1) !== state) states.push(state);
        }, 50);
        """
      try browser.inject(try PageFaults.script(last: holds))
      try browser.open(program.url("/"))
      try #require(eventually(within: 60) { browser.isTrue("window.nightjar") }, "\(browser.page)")
      try browser.click("Wake me if the line fails")
      #expect(browser.alarmSounds(), "\(browser.page)")
      let isSaid = eventually { browser.text("document.querySelector('.dialog p').textContent") == "No picture comes." }
      #expect(isSaid, "\(browser.page)")
      // The first session is given up, and leaves no picture but a black one of Chromium's own.
      let offers = "performance.getEntriesByType('resource').filter((entry) => entry.name.endsWith('/whep')).length"
      #expect(eventually { browser.number(offers) ?? 0 > 1 }, "\(browser.page)")
      let states = try #require(browser.text("states.join(' ')")).split(separator: " ")
      #expect(states.contains("dead") && Set(states).isDisjoint(with: ["live", "pictures"]), "\(states)")
      try relay.lose(.nothing)
      // The page's pauses between two sessions grow up to a minute.
      #expect(eventually(within: 120) { browser.text("nightjar.state") == "live" }, "\(browser.page)")
      #expect(browser.pictures > 0 && browser.alarmSounds())
      try browser.click("I am awake")
      #expect(eventually { browser.alarm.peak == 0 })
    }

    @Test func `the alarm sounds for a camera that is away, though pictures that say so come`() throws {
      let program = try WatchedProgram(["--wait", "--audio", "test"], source: "camera")
      let browser = try Browser(in: program.directory)
      try browser.inject(try PageFaults.script())
      try browser.open(program.url("/"))
      try #require(eventually(within: 60) { browser.pictures > 10 }, "\(browser.page)")
      try browser.click("Wake me if the line fails")
      #expect(browser.alarmSounds(), "\(browser.page)")
      // Where the host pauses, its pictures or its answers are missing first.
      let words = "The camera is disconnected."
      let isSaid = eventually { browser.text("document.querySelector('.dialog p').textContent") == words }
      #expect(isSaid, "\(browser.page)")
      #expect(eventually { browser.text("nightjar.connection?.connectionState") == "connected" }, "\(browser.page)")
    }

    @Test(.enabled(if: runsLong)) func `the alarm does not sound while the line is alive, for half an hour`() throws {
      let program = try WatchedProgram(["--audio", "test"])
      let browser = try Browser(in: program.directory)
      try browser.open(program.url("/"))
      try #require(eventually(within: 60) { browser.pictures > 10 }, "\(browser.page)")
      try browser.click("Wake me if the line fails")
      // Each state, and the longest time between two pictures.
      try browser.run(
        """
        window.watched = { states: [], longest: 0 };
        let last = performance.now();
        const video = document.querySelector("video");
        const seen = () => {
          watched.longest = Math.max(watched.longest, performance.now() - last);
          last = performance.now();
          video.requestVideoFrameCallback(seen);
        };
        video.requestVideoFrameCallback(seen);
        setInterval(() => {
          const state = `${nightjar.state} ${nightjar.cause} ${nightjar.alarm.isSounding}`;
          if (watched.states.at(-1) !== state) watched.states.push(state);
        }, 100);
        """)
      let first = browser.pictures
      let end = ContinuousClock.now + .seconds(1800)
      while .now < end, program.process.isRunning { usleep(1_000_000) }
      let states = browser.text("watched.states.join()")
      print(
        "no false alarm: \(browser.pictures - first) pictures, the longest pause "
          + "\(browser.number("watched.longest") ?? -1) ms, states \(states ?? "")")
      #expect(states == "live null false", "\(browser.page) \(program.process.errorSoFar.suffix(1000))")
      #expect(browser.pictures > first + 1000)
    }
  }
#endif
