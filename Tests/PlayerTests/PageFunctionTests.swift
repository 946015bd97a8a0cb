#if X264
  import Foundation
  import TestSupport
  import Testing

  /// The effects of the page's buttons, and its description of itself for browsers and readers of screens.
  @Suite(.serialized) struct PageFunctionTests {
    /// Opens the page as `anna`, and waits for pictures.
    private func open(_ program: WatchedProgram, in browser: Browser) throws {
      try browser.open(program.url("/"))
      try browser.run("localStorage.setItem('nightjar-login', 'Basic ' + btoa('anna:correct horse'))")
      try browser.open("about:blank")
      try browser.open(program.url("/"))
      try #require(eventually(within: 60) { browser.pictures > 10 }, "\(browser.page) \(program.process.errorSoFar)")
    }

    @Test func `each button does what it says`() throws {
      let program = try WatchedProgram(["--audio", "test"], users: ["anna": "correct horse"])
      let users = program.directory.path("users")
      let role = try Subprocess.run(
        [nightjarPath, "user", "role", "anna", "control", "--users", users], in: program.directory)
      #expect(role.status == 0, "\(role.error)")
      let browser = try Browser(in: program.directory)
      try browser.inject(
        try PageFaults.script(
          last: """
            const wake = navigator.wakeLock.request.bind(navigator.wakeLock);
            navigator.wakeLock.request = async (type) => window.lock = await wake(type);
            """))
      let downloads = program.directory.path("downloads")
      try FileManager.default.createDirectory(atPath: downloads, withIntermediateDirectories: true)
      try browser.command("Browser.setDownloadBehavior", ["behavior": "allow", "downloadPath": downloads])
      try open(program, in: browser)

      // The numbers of the pictures grow, as the canvas has them; the sound is the test tone of 1 kHz.
      // Not each number can be read: a busy host codes coarsely.
      var read: Double?
      _ = eventually {
        read = browser.pictureNumber()
        return read != nil
      }
      let first = try #require(read)
      #expect(eventually { (browser.pictureNumber() ?? -1) > first })
      try browser.click("Turn the sound on")
      let hears = eventually { browser.sound.peak > 0.05 && abs(browser.sound.frequency - 1000) < 20 }
      #expect(hears, "\(browser.sound)")
      let level = "document.querySelector('meter').value"
      #expect(eventually { (browser.number(level) ?? -60) > -40 })
      try browser.click("Turn the sound off")
      #expect(browser.isTrue("document.querySelector('video').muted"))
      // A line that dies for a moment releases the screen, and takes it again.
      #expect(eventually { browser.isTrue("lock && !lock.released") })

      try browser.click("Figures")
      let figures = /[1-9]\d* kbit\/s\n[1-9]\d* pictures a second\n\d+ ms in this device/
      let text = "document.querySelector('.figures').textContent"
      #expect(eventually { browser.text(text)?.firstMatch(of: figures) != nil }, "\(browser.text(text) ?? "")")

      try browser.click("Rotate")
      #expect(eventually(within: 60) { browser.number("document.querySelector('video').videoWidth") == 240 })

      try browser.click("Night")
      let filter = browser.text("getComputedStyle(document.querySelector('video')).filter")
      #expect(filter?.contains("brightness(0.5)") == true)
      try browser.click("Full screen")
      #expect(eventually { browser.isTrue("document.fullscreenElement?.classList.contains('player')") })
      try browser.click("Full screen")
      #expect(eventually { browser.isTrue("!document.fullscreenElement") })
      try browser.click("Small window")
      #expect(eventually { browser.isTrue("document.pictureInPictureElement?.tagName === 'VIDEO'") })
      try browser.run("document.exitPictureInPicture()")

      try browser.click("Save a picture")
      var saved: [String] = []
      let isSaved = eventually {
        saved = (try? FileManager.default.contentsOfDirectory(atPath: downloads)) ?? []
        // Until the picture is whole, there is a .crdownload too.
        return saved.count == 1 && saved[0].hasSuffix(".jpg")
      }
      try #require(isSaved && saved[0].hasPrefix("camera-"), "\(saved)")
      let probe = try Subprocess.run(
        ["ffprobe", "-v", "error", "-show_entries", "stream=codec_name,width,height", "-of", "csv=p=0"]
          + ["\(downloads)/\(saved[0])"], in: program.directory)
      #expect(probe.outputText == "mjpeg,240,320\n", "\(probe.outputText)\(probe.error)")

      // What was chosen stays; the session is ended by the log-in that began it.
      #expect(browser.isTrue("localStorage.getItem('nightjar-night') === '1'"))
      _ = try browser.console()
      let ended = program.process.log.ends(ofViewers: "webrtc").count
      try browser.click("Log out")
      #expect(eventually { browser.isTrue("document.querySelector('input[name=username]')") })
      #expect(eventually { program.process.log.ends(ofViewers: "webrtc").count > ended })
      #expect(eventually { browser.isTrue("!localStorage.getItem('nightjar-login') && lock.released") })
      let deletes = try browser.console().filter { $0.contains("/whep/") }
      #expect(deletes == [])
    }

    @Test func `two cameras are a list with pictures, and each leads to its own`() throws {
      let port = try TCPPort.free()
      let program = try ConfiguredProgram(
        """
        https = "127.0.0.1:\(port)"
        webrtc-port = 0
        rtsp = "127.0.0.1:\(try TCPPort.free())"
        encoder = "x264"
        bitrate-floor = "\(FullPictures.floor)"
        [[camera]]
        name = "nursery"
        source = "test"
        size = "320x240"
        [[camera]]
        name = "hall.stairs"
        source = "test"
        size = "160x120"
        """, until: "https ")
      let browser = try Browser(in: program.directory)
      try browser.open("https://127.0.0.1:\(port)/")
      let images = "document.querySelectorAll('.cameras li img').length === 2 "
      #expect(eventually { browser.isTrue(images) }, "\(browser.page)")
      let loaded = "[...document.querySelectorAll('.cameras img')].map((image) => image.naturalWidth).join()"
      #expect(eventually { browser.text(loaded) == "320,160" }, "\(browser.text(loaded) ?? "")")
      try browser.click("hall.stairs")
      #expect(eventually(within: 60) { browser.pictures > 5 }, "\(browser.page) \(program.process.errorSoFar)")
      #expect(browser.number("document.querySelector('video').videoWidth") == 160)
      // A camera without a microphone offers no sound.
      let sound = "document.querySelector('.sound button')"
      #expect(eventually { browser.text("\(sound).textContent") == "This camera has no microphone." })
      #expect(eventually { browser.isTrue("\(sound).disabled") })
      try browser.click("All cameras")
      #expect(eventually { browser.isTrue(images) })
      try browser.click("nursery")
      #expect(eventually(within: 60) { browser.number("document.querySelector('video')?.videoWidth") == 320 })
    }

    @Test func `readers of screens get names and roles, phones can install the page, and a touch starts it`() throws {
      let program = try WatchedProgram(["--audio", "test"], users: ["anna": "correct horse"])
      let browser = try Browser(in: program.directory)
      // As an iPhone in Low Power Mode does it.
      try browser.inject(
        """
        const play = HTMLMediaElement.prototype.play;
        HTMLMediaElement.prototype.play = async function () {
          if (!navigator.userActivation.hasBeenActive) { this.pause(); throw new DOMException("no touch", "NotAllowedError"); }
          return play.call(this);
        };
        """)
      try browser.open(program.url("/"))
      try browser.run("localStorage.setItem('nightjar-login', 'Basic ' + btoa('anna:correct horse'))")
      try browser.open("about:blank")
      try browser.open(program.url("/"))
      try #require(
        eventually(within: 60) { browser.isTrue("document.querySelector('.touch')?.hidden === false") },
        "\(browser.page)")
      try browser.click("Touch to start")
      let plays = "document.querySelector('.touch').hidden && !document.querySelector('video').paused"
      #expect(eventually { browser.isTrue(plays) })
      #expect(eventually(within: 60) { browser.text("nightjar.state") == "live" })

      // What Chromium tells a reader of screens.
      func nodes() throws -> [(role: String, name: String)] {
        let answer = try browser.command("Accessibility.getFullAXTree") as? [String: Any]
        return (answer?["nodes"] as? [[String: Any]] ?? []).filter { $0["ignored"] as? Bool != true }.map {
          (
            ($0["role"] as? [String: Any])?["value"] as? String ?? "",
            ($0["name"] as? [String: Any])?["value"] as? String ?? ""
          )
        }
      }
      func buttons(_ tree: [(role: String, name: String)]) -> [String] {
        tree.filter { ["button", "ToggleButton"].contains($0.role) }.map(\.name)
      }
      let expected: Set = [
        "Turn the sound on", "Wake me if the line fails", "Tell me of alerts",
        "Tell this phone when the page is closed", "Events", "Night", "Full screen",
        "Small window", "Save a picture", "Rotate", "Viewers", "Phones", "Figures", "Log out",
      ]
      // Some come once the host has told what it has.
      var tree = try nodes()
      _ = try eventually {
        tree = try nodes()
        return Set(buttons(tree)) == expected && tree.contains { $0.role == "meter" }
      }
      #expect(Set(buttons(tree)) == expected, "\(buttons(tree))")
      #expect(tree.contains { $0.role == "main" } && tree.contains { $0.role == "heading" && $0.name == "camera" })
      #expect(tree.contains { $0.role == "Video" && $0.name == "camera" }, "\(tree)")
      #expect(tree.contains { $0.role == "meter" && $0.name == "Sound level" }, "\(tree)")
      #expect(tree.contains { $0.role == "status" })
      // The alarm is a dialog with a name, and alone on the page.
      try browser.click("Wake me if the line fails")
      program.process.send(SIGSTOP)
      #expect(eventually(within: 50) { browser.isTrue("nightjar.alarm.isSounding") })
      var ringing = try nodes()
      _ = try eventually {
        ringing = try nodes()
        return ringing.contains { $0.role == "alertdialog" }
      }
      program.process.send(SIGCONT)
      #expect(ringing.contains { $0.role == "alertdialog" && $0.name == "The line is dead" }, "\(ringing)")
      #expect(buttons(ringing) == ["I am awake"])
      #expect(browser.text("document.activeElement.textContent") == "I am awake")
      try browser.click("I am awake")
      #expect(browser.isTrue("document.activeElement.textContent === 'The alarm is on'"))

      let manifest = try browser.command("Page.getAppManifest") as? [String: Any]
      #expect((manifest?["errors"] as? [Any])?.isEmpty == true, "\(manifest ?? [:])")
      #expect((manifest?["url"] as? String)?.hasSuffix("/page/manifest.webmanifest") == true)
      let obstacles = try browser.command("Page.getInstallabilityErrors") as? [String: Any]
      let names = (obstacles?["installabilityErrors"] as? [[String: Any]] ?? []).compactMap { $0["errorId"] as? String }
      #expect(names == [], "\(names)")
    }
  }
#endif
