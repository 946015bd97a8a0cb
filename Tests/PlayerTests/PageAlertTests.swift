#if X264
  import Foundation
  import Synchronization
  import TestSupport
  import Testing

  /// The sound of a room, through a pipe that alsa-lib's plugin `file` reads: quiet noise at first, and as loud as a test says.
  final class RoomSound: Sendable {
    private let level = Atomic(1)
    /// A reader that never reads: the program may open the pipe anew meanwhile.
    private let (held, end): (Int32, Int32)

    /// The name of the device, for `--audio`.
    static let device = "room"

    /// Writes the definition of the device into `directory`, which must be the program's home, and begins to play.
    init(in directory: TemporaryDirectory) throws {
      let pipe = directory.path("room")
      try #require(mkfifo(pipe, 0o600) == 0)
      held = open(pipe, O_RDONLY | O_NONBLOCK)
      end = open(pipe, O_WRONLY | O_NONBLOCK)
      try #require(held >= 0 && end >= 0)
      // No more than a tenth of a second waits in the pipe. F_SETPIPE_SZ of <fcntl.h>.
      _ = fcntl(end, 1031, 4096)
      try FileDevice.define(Self.device, reading: pipe, in: directory)
      Thread.detachNewThread { [self] in play() }
    }

    deinit {
      close(held)
      close(end)
    }

    /// Makes noise of `level` of 1000, from now on; nil lets the microphone hang. A fifth of each second stays quiet:
    /// noise without a pause is the background after ten seconds, and its alert over.
    func play(_ level: Int?) { self.level.store(level ?? -1, ordering: .relaxed) }

    /// Ends the sound.
    func stop() { level.store(-2, ordering: .relaxed) }

    private func play() {
      var generator = SystemRandomNumberGenerator()
      var number = 0
      while true {
        let level = level.load(ordering: .relaxed)
        if level == -2 { return }
        guard level >= 0 else {
          usleep(10_000)
          continue
        }
        // 20 ms, all or nothing. The pipe is full until the program has read what came before.
        number += 1
        let loudness = Int16(number % 50 < 40 ? level : min(level, 1))
        let samples = (0..<960).map { _ in Int16.random(in: -32_000...32_000, using: &generator) / 1000 * loudness }
        while samples.withUnsafeBytes({ write(end, $0.baseAddress, $0.count) }) < 0 {
          guard errno == EAGAIN, self.level.load(ordering: .relaxed) != -2 else { break }
          usleep(2000)
        }
      }
    }
  }

  /// The page's alerts, from the noise in the room to the banner, and back to the host.
  @Suite struct PageAlertTests {
    /// Instruments of the page: what the phone does, when the banner appears, and the last lines that it has shown, which
    /// the next event takes away.
    private static let instruments = """
      window.told = { vibrations: 0, asked: null, at: 0, words: [] };
      told.shows = (title) => [...document.querySelectorAll(".alerts strong")].some((one) => one.textContent === title);
      navigator.vibrate = (pattern) => { if (pattern) told.vibrations += 1; return true; };
      const request = Notification.requestPermission.bind(Notification);
      Notification.requestPermission = () => {
        told.asked = navigator.userActivation.isActive;
        return request();
      };
      const reach = window.fetch;
      told.cutter = new AbortController();
      told.cut = (isCut) => { told.isCut = isCut; told.cutter.abort(); told.cutter = new AbortController(); };
      window.fetch = (path, options = {}) => {
        if (!String(path).startsWith("v1/events")) return reach(path, options);
        if (told.isCut) return Promise.reject(new TypeError("the network is dead"));
        const signals = [options.signal, told.cutter.signal].filter((signal) => signal);
        return reach(path, { ...options, signal: AbortSignal.any(signals) });
      };
      addEventListener("DOMContentLoaded", () => new MutationObserver(() => {
        if (!told.at && told.shows("Noise")) told.at = Date.now();
        const last = document.querySelector(".alerts > p:last-child");
        if (last?.checkVisibility()) told.words.push(last.textContent);
      }).observe(document.body, { childList: true, subtree: true }));
      """

    @Test func `a noise is shown, heard and notified, a missed alert is replayed, and a touch acknowledges it`() throws
    {
      let directory = try TemporaryDirectory()
      let room = try RoomSound(in: directory)
      defer { room.stop() }
      let program = try WatchedProgram(
        ["--audio", RoomSound.device, "--noise", "medium", "--webrtc-port", "0"], users: ["anna": "correct horse"],
        environment: ["HOME": directory.url.path])
      let browser = try Browser(in: program.directory)
      try browser.inject(try PageFaults.script(last: PageFaults.lastingWords + Self.instruments))
      let origin = String(program.url("/").dropLast())
      try browser.command("Browser.grantPermissions", ["permissions": ["notifications"], "origin": origin])
      try browser.open(program.url("/"))
      try browser.run("localStorage.setItem('nightjar-login', 'Basic ' + btoa('anna:correct horse'))")
      try browser.open("about:blank")
      try browser.open(program.url("/"))
      try #require(
        eventually(within: 60) { browser.text("nightjar.state") == "live" },
        "\(browser.page) \(program.process.errorSoFar)")
      // A busy machine may have told of something else.
      #expect(browser.isTrue("told.asked === null && !told.shows('Noise') && !told.at"))
      try browser.click("Tell me of alerts")
      #expect(eventually { browser.isTrue("told.asked === true") }, "no touch asked for the permission")
      let worker = "navigator.serviceWorker.getRegistrations().then(([one]) => `${one?.active?.state}`)"
      #expect(eventually { browser.text(worker) == "activated" }, "\(browser.text(worker) ?? "")")

      // The first second of sound is the first background.
      #expect(eventually(within: 60) { browser.pictures > 60 })
      let noise = Date().timeIntervalSince1970
      room.play(500)
      let isShown = eventually(within: 30) { browser.isTrue("told.at") }
      try #require(isShown, "\(browser.page) \(program.process.errorSoFar)")
      let delay = (browser.number("told.at") ?? .infinity) / 1000 - noise
      print("from the noise to the banner: \(Int(delay * 1000)) ms")
      // The goal is 3 s.
      #expect(delay > 0 && delay < 30)
      #expect(browser.isTrue("told.shows('Noise')"))
      let tree = try browser.command("Accessibility.getFullAXTree") as? [String: Any]
      let roles = (tree?["nodes"] as? [[String: Any]] ?? []).compactMap {
        ($0["role"] as? [String: Any])?["value"] as? String
      }
      #expect(roles.contains("alert"))
      var heard = (peak: 0.0, frequency: 0.0)
      let isHeard = eventually {
        heard = browser.alarm
        return heard.peak > 0.3 && [523, 784].contains { abs(heard.frequency - $0) < 10 }
      }
      #expect(isHeard, "\(heard)")
      #expect(eventually { browser.isTrue("told.vibrations > 0") })
      func notified() -> String? {
        browser.text(
          """
          navigator.serviceWorker.getRegistrations().then(async ([one]) => (await one.getNotifications()).map((one) => one.title).join())
          """)
      }
      #expect(
        eventually { notified()?.split(separator: ",").contains("Noise") == true }, "\(notified() ?? "")")

      // Who may only watch ends the noise of this device, and leaves the alert to others.
      try browser.click("I take care of it")
      let onlyHere = "You may watch, and change nothing: other devices still show this alert."
      #expect(eventually { browser.isTrue("told.words.includes('\(onlyHere)')") }, "\(browser.page)")
      #expect(eventually { browser.alarm.peak == 0 })
      let users = program.directory.path("users")
      let role = try Subprocess.run(
        [nightjarPath, "user", "role", "anna", "control", "--users", users], in: program.directory)
      #expect(role.status == 0, "\(role.error)")

      // An alert that begins while the events do not get through.
      try browser.run("told.cut(true)")
      room.play(nil)
      /// The texts of the events of a lost microphone that are in this state.
      func lost(_ state: String) throws -> [String] {
        let events = try program.events().filter { $0["kind"] as? String == "microphone-lost" }
        return events.filter { $0["state"] as? String == state }.compactMap { $0["text"] as? String }
      }
      let start = "the sound stands still: "
      let isMissed = try eventually(within: 60) { try lost("began").contains { $0.hasPrefix(start) } }
      #expect(isMissed, "\(program.process.errorSoFar)")
      #expect(!browser.isTrue("told.shows('Microphone lost')"))
      try browser.run("told.cut(false)")
      let isReplayed = eventually(within: 60) { browser.isTrue("told.shows('Microphone lost')") }
      #expect(isReplayed, "\(browser.page)")
      try browser.click("I take care of it")
      let acknowledged = "microphone lost: acknowledged by anna"
      let isAcknowledged = try eventually(within: 30) { try lost("acknowledged").contains { $0 == acknowledged } }
      #expect(isAcknowledged, "\(browser.page)")
      #expect(eventually { browser.isTrue("!document.querySelector('.alerts').childElementCount") }, "\(browser.page)")
      try browser.click("Events")
      let list = "document.querySelector('dialog[open]')?.innerText ?? ''"
      #expect(
        eventually { browser.isTrue("(\(list)).includes('acknowledged by anna')") }, "\(browser.text(list) ?? "")")
      #expect(browser.isTrue("(\(list)).includes('Noise')"))
      // The noise began seconds ago, and so its picture of after it is there by now. The pictures have numbers.
      let moments = try eventually(within: 60) {
        try program.control("events").contains(/noise.*pictures: before, after/)
      }
      #expect(moments)
      try browser.run(
        """
        [...document.querySelectorAll("dialog li")].findLast((one) => one.querySelector("span").textContent === "Noise")
          .querySelector("button").click()
        """)
      func number(_ moment: String) -> Double? {
        browser.number("readNumber(document.querySelector('dialog img.\(moment)') ?? {})")
      }
      #expect(eventually { number("before") != nil && number("after") != nil }, "\(browser.text(list) ?? "")")
      #expect((number("before") ?? .infinity) < (number("after") ?? 0))
      // The browser says here what the policy for contents has refused.
      #expect(try browser.refusedContents() == [])
    }
  }
#endif
