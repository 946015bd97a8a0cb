#if X264
  import CLinux
  import Foundation
  import TestSupport
  import Testing

  /// Pictures one by one on the page, for each reason that WebRTC does not work for.
  @Suite(.serialized) struct PageFallbackTests {
    /// The page's words for each reason why there is no WebRTC.
    private static let notices = [
      "unsupported": "This browser has no WebRTC: pictures come one by one, without sound.",
      "noH264": "This browser plays no H.264: pictures come one by one, without sound.",
      "noHEVC":
        "This browser plays no H.265 (HEVC), which the camera sends: pictures come one by one, without sound.",
      "notNow": "This browser plays no H.265 (HEVC), and the camera's computer makes no H.264 now: "
        + "until it does, pictures come one by one, without sound.",
      "noServer": "WebRTC is not available here: pictures come one by one, without sound.",
      "undecoded": "This browser cannot decode the video: pictures come one by one, without sound.",
      "blocked": "The network lets no video through: pictures come one by one, without sound.",
    ]

    /// Expects that the page shows pictures that go on for `reason`, and says so.
    private func expectPictures(_ browser: Browser, _ reason: String) {
      let says = eventually(within: 60) {
        browser.text("nightjar.state") == "pictures" && browser.text("nightjar.reason") == reason
          && browser.notice == Self.notices[reason]
      }
      #expect(says, "\(reason): \(browser.page)")
      let first = browser.pictureNumber(in: "img")
      let goesOn = eventually { (browser.pictureNumber(in: "img") ?? -1) > (first ?? 0) }
      #expect(goesOn, "\(reason): \(first ?? -1), \(browser.page)")
      #expect(!browser.isTrue("document.querySelector('.picture img').hidden"))
      // There is no sound to turn on.
      #expect(browser.isTrue("document.querySelector('.sound').hidden"))
    }

    /// Expects that the page has no reason for pictures one by one, and names none.
    private func expectNoReason(_ browser: Browser) {
      #expect(browser.isTrue("nightjar.reason === null"), "\(browser.page)")
      #expect(!Self.notices.values.contains(browser.notice ?? ""), "\(browser.page)")
    }

    @Test func `a browser without WebRTC or H.264, and a host without its UDP port, get pictures one by one`() throws {
      let port = try UDPPort.free()
      let program = try WatchedProgram(["--webrtc-port", "\(port)"])
      let browser = try Browser(in: program.directory)
      try browser.inject(
        try PageFaults.script(
          first: "if (location.search === '?none') delete window.RTCPeerConnection;",
          last: """
            if (location.search === '?codecs') RTCRtpReceiver.getCapabilities = () => ({ codecs: [{ mimeType: "video/VP8" }] });
            if (location.search === '?offer') faults.offer = (text) => text.replaceAll("H264", "H999");
            """))
      try browser.open(program.url("/?none"))
      expectPictures(browser, "unsupported")
      try browser.open(program.url("/?codecs"))
      expectPictures(browser, "noH264")
      // The program itself refuses such an offer.
      try browser.open(program.url("/?offer"))
      expectPictures(browser, "noH264")

      // The UDP port is another program's.
      let holder = try Subprocess(
        [
          "/usr/bin/python3", "-c",
          "import socket, time; s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM); s.bind(('127.0.0.1', 0)); "
            + "print(s.getsockname()[1], flush=True); time.sleep(600)",
        ], in: program.directory)
      defer { holder.send(SIGKILL) }
      try #require(eventually { holder.outputSoFar.hasSuffix("\n") })
      let other = try WatchedProgram(["--webrtc-port", "\(holder.outputSoFar.dropLast())"])
      try browser.open(other.url("/"))
      expectPictures(browser, "noServer")
    }

    @Test func `a browser that takes longer for a picture than the next one needs shows some, and not none`() throws {
      let program = try WatchedProgram(["--webrtc-port", "\(try UDPPort.free())"])
      let browser = try Browser(in: program.directory)
      // An image takes a third of a second, in which three pictures come. One whose place another takes meanwhile is never shown.
      try browser.inject(
        try PageFaults.script(
          first: "delete window.RTCPeerConnection;",
          last: """
            const source = Object.getOwnPropertyDescriptor(HTMLImageElement.prototype, "src");
            window.replaced = 0;
            Object.defineProperty(HTMLImageElement.prototype, "src", { ...source, set(value) {
              if (this.late) replaced += 1;
              clearTimeout(this.late);
              this.late = setTimeout(() => {
                this.late = null;
                source.set.call(this, value);
              }, 330);
            } });
            """))
      try browser.open(program.url("/"))
      expectPictures(browser, "unsupported")
      #expect(browser.number("replaced") == 0)
    }

    #if X265
      @Test
      func `a browser that plays no HEVC gets H.264, one that plays neither gets pictures, and a program their URL`()
        throws
      {
        let program = try WatchedProgram(
          ["--codec", "hevc", "--webrtc-port", "\(try UDPPort.free())"], encoder: "x265")
        let browser = try Browser(in: program.directory)
        // Chromium of Debian offers no H265; another one might.
        try browser.inject(
          try PageFaults.script(
            last: """
              faults.offer = (text) => {
                const other = text.replaceAll('H265', 'H999');
                return location.search === '?neither' ? other.replaceAll('H264', 'H998') : other;
              };
              """))
        try browser.open(program.url("/?neither"))
        expectPictures(browser, "noHEVC")
        let chromium = packageRoot.appendingPathComponent("Tests/WebRTCTests/Offers/chromium.sdp")
        let offer = try program.directory.write(
          Array(try String(contentsOf: chromium, encoding: .utf8).replacingOccurrences(of: "H264", with: "H998").utf8),
          as: "offer.sdp")
        let answer = try program.curl(["-H", "Content-Type: application/sdp", "--data-binary", "@\(offer)"], "/whep")
        let refusal = try FailureAnswer(answer.body.utf8)
        #expect(answer.status == 406 && refusal.error.hasSuffix("; pictures as JPEG: /stream.mjpg"), "\(answer.body)")
        let pictures = try program.curl(["-I"], "/snapshot.jpg")
        #expect(pictures.status == 200 && pictures.headers["content-type"] == "image/jpeg", "\(pictures.headers)")

        try browser.open(program.url("/"))
        let isLive = eventually(within: 60) { browser.pictures > 30 && browser.text("nightjar.state") == "live" }
        #expect(isLive, "\(browser.page) \(program.process.errorSoFar)")
        #expect(try program.viewers().contains { $0["codec"] as? String == "h264" })
        let shown = ProgramLog(try program.control("viewers")).lines
        #expect(shown.contains("  gets H.264 instead of HEVC"), "\(shown)")
      }

      @Test(.enabled(if: sysconf(CInt(_SC_NPROCESSORS_ONLN)) <= 24, "a hundredth of more processors suffices"))
      func `a page gets pictures while the processors do not suffice for H.264, and plays once they do`() throws {
        let https = try TCPPort.free()
        // Half of the first size needs more than a hundredth of 4 or 24 processors. The second codec needs no encoder
        // beside it.
        let first = sysconf(CInt(_SC_NPROCESSORS_ONLN)) > 4 ? "1920x1080" : "960x540"
        func configuration(_ codec: String, _ size: String, fps: Int) -> String {
          """
          source = 'test'
          size = '\(size)'
          fps = '\(fps)'
          codec = '\(codec)'
          x264-preset = 'ultrafast'
          cpu-budget = '1%'
          https = '127.0.0.1:\(https)'

          """
        }
        let program = try ConfiguredProgram(
          configuration("hevc", first, fps: 60), environment: ["NIGHTJAR_WEBRTC_PORT": "0"], until: "https ")
        let browser = try Browser(in: program.directory)
        try browser.inject(
          try PageFaults.script(last: "faults.offer = (text) => text.replaceAll('H265', 'H999');"))
        try browser.open("https://127.0.0.1:\(https)/")
        expectPictures(browser, "notNow")

        try browser.run("window.isSamePage = true")
        try program.write(configuration("h264", "320x240", fps: 30))
        #expect(try program.reload() == ["camera": "restarted"], "\(program.process.errorSoFar)")
        // Ten seconds. An offer that meets the reload may be answered too late, and the next one comes a minute later.
        let isLive = eventually(within: 180) { browser.pictures > 10 && browser.text("nightjar.state") == "live" }
        #expect(isLive, "\(browser.page) \(program.process.errorSoFar)")
        expectNoReason(browser)
        #expect(browser.isTrue("window.isSamePage"))
        try program.end()
      }
    #endif

    /// A host that refuses each offer while `offers.isRefused`; `offers.count` counts the offers.
    ///
    /// - Parameters:
    ///   - retryAfter: the value of `Retry-After` in the refusal, in seconds; nil for none.
    ///   - retryTime: the page's own pause between offers, in milliseconds.
    private static func refusing(retryAfter: Int?, retryTime: Int) -> String {
      """
      {
        const served = window.fetch;
        const headers = \(retryAfter.map { "{ 'Retry-After': '\($0)' }" } ?? "{}");
        window.offers = { isRefused: true, count: 0 };
        window.fetch = async (path, options = {}) => {
          if (options.method !== "POST" || !String(path).endsWith("whep")) return served(path, options);
          offers.count += 1;
          nightjar.retryTime = \(retryTime);
          if (!offers.isRefused) return served(path, options);
          return new Response("the stream is H265; no H.264 beside HEVC", { status: 406, headers });
        };
      }
      """
    }

    @Test func `a page that is refused H.264 for some seconds asks again after them, and plays without a reload`()
      throws
    {
      let program = try WatchedProgram(["--webrtc-port", "\(try UDPPort.free())"])
      let browser = try Browser(in: program.directory)
      // The page's own pauses would be a minute by then: 2 s, and twice as long each time.
      let refusing = Self.refusing(retryAfter: 1, retryTime: 3_600_000)
      try browser.inject(try PageFaults.script(last: refusing))
      try browser.open(program.url("/"))
      expectPictures(browser, "notNow")
      let asksAgain = eventually(within: 60) { (browser.number("offers.count") ?? 0) > 5 }
      #expect(asksAgain, "\(browser.number("offers.count") ?? -1) offers")
      // Where the host pauses, the line is dead meanwhile.
      #expect(eventually { browser.text("nightjar.state") == "pictures" }, "\(browser.page)")

      // A page that is loaded anew would refuse again.
      try browser.run("offers.isRefused = false")
      let isLive = eventually(within: 60) { browser.pictures > 10 && browser.text("nightjar.state") == "live" }
      #expect(isLive, "\(browser.page) \(program.process.errorSoFar)")
      expectNoReason(browser)
      #expect(browser.isTrue("document.querySelector('.picture img').hidden"))
    }

    @Test func `a page that is refused H.264 for good does not ask again`() throws {
      let program = try WatchedProgram(["--webrtc-port", "\(try UDPPort.free())"])
      let browser = try Browser(in: program.directory)
      try browser.inject(try PageFaults.script(last: Self.refusing(retryAfter: nil, retryTime: 500)))
      try browser.open(program.url("/"))
      expectPictures(browser, "noHEVC")
      // Ten pauses later.
      try browser.run("window.since = performance.now()")
      #expect(eventually(within: 60) { browser.isTrue("performance.now() - since > 5000") })
      #expect(browser.number("offers.count") == 1)
      #expect(browser.text("nightjar.reason") == "noHEVC", "\(browser.page)")
      // Where the host pauses, the page says that instead.
      #expect(eventually { browser.notice == Self.notices["noHEVC"] }, "\(browser.page)")
    }

    @Test func `where UDP is blocked pictures come one by one, also after a dead line, until WebRTC is back`() throws {
      let port = try UDPPort.free()
      let program = try WatchedProgram(["--webrtc-port", "\(port)"])
      let relay = try UDPRelay(to: port, in: program.directory)
      try relay.lose(.everything)
      let browser = try Browser(in: program.directory)
      try browser.inject(try PageFaults.script(last: "faults.relay = \(relay.port);"))
      try browser.open(program.url("/"))
      expectPictures(browser, "blocked")
      try browser.run("nightjar.retryTime = 500")
      try browser.click("Wake me if the line fails")

      // WebRTC is to be tried again while the line is dead: this used to end both for good.
      program.process.send(SIGSTOP)
      #expect(browser.alarmSounds(), "\(browser.page)")
      let cause = "The camera's computer does not answer."
      #expect(eventually(within: 50) { browser.shown("#alarm-cause") == cause }, "\(browser.page)")
      program.process.send(SIGCONT)
      expectPictures(browser, "blocked")
      try browser.click("I am awake")

      try relay.lose(.nothing)
      // A pause that was chosen before the test changed it may be the page's own.
      try browser.run("window.dispatchEvent(new Event('online'))")
      let isLive = eventually(within: 90) { browser.text("nightjar.state") == "live" }
      #expect(isLive, "\(browser.page)")
      let first = browser.pictureNumber()
      #expect(eventually { (browser.pictureNumber() ?? -1) > (first ?? 0) })
      expectNoReason(browser)
    }

    @Test func `a browser that decodes nothing connects anew, and then gets pictures one by one`() throws {
      let program = try WatchedProgram()
      let browser = try Browser(in: program.directory)
      try browser.inject(try PageFaults.script(first: "window.transforms = true;"))
      try browser.open(program.url("/"))
      try #require(eventually(within: 60) { browser.pictures > 10 }, "\(browser.page)")
      // Packets come, and hold no pictures.
      try browser.run("nightjar.retryTime = 500; window.before = nightjar.connection; faults.corrupts = true")
      let cause = "This browser cannot decode the pictures that come."
      let isNoticed = eventually(within: 50) { browser.notice == cause }
      #expect(isNoticed, "\(browser.page)")
      let isAnew = eventually(within: 50) { browser.isTrue("nightjar.connection && nightjar.connection !== before") }
      #expect(isAnew, "\(browser.page)")
      expectPictures(browser, "undecoded")
      try browser.run("faults.corrupts = false")
      #expect(eventually(within: 60) { browser.text("nightjar.state") == "live" }, "\(browser.page)")
    }
  }
#endif
