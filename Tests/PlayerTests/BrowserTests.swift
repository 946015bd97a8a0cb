#if X264
  import Foundation
  import TestSupport
  import Testing

  /// The page, as Chromium shows it.
  @Suite(.serialized) struct BrowserTests {
    /// The number of packets of sound that the page's connection has received.
    private static let sound = """
      (async () => { for (const report of (await nightjar.connection.getStats()).values())
        if (report.type === "inbound-rtp" && report.kind === "audio") return report.totalAudioEnergy; })()
      """

    /// The complaints in the page's console since the last call. On a busy machine the page asks by a connection
    /// whether the host is there (page/reach.js), and ends the connection, which may still be under way: that is none.
    private static func complaints(_ browser: Browser) throws -> [String] {
      try browser.console().filter { line in
        // No other script of the page has WebSockets. One that the browser ends by itself is told of without the
        // script.
        !(line.contains("WebSocket connection to ")
          && (line.contains("page/reach.js") || line.contains("/page/icon.svg' failed: ")))
      }
    }

    @Test func `a phone's browser shows the picture and plays the sound`() throws {
      let program = try WatchedProgram(["--audio", "test"])
      program.awaitPicture()
      let browser = try Browser(in: program.directory)
      try browser.open(program.url("/"))
      let plays = eventually(within: 60) { browser.pictures > 30 }
      #expect(plays, "\(browser.page) \(program.process.errorSoFar)")
      #expect(browser.number("document.querySelector('video').videoWidth") == 320)
      let isLive = eventually { browser.text("document.querySelector('[role=status]').textContent") == "Live" }
      #expect(isLive, "\(browser.page)")
      // A browser plays no sound before a touch, and the page says so.
      #expect(browser.isTrue("document.querySelector('video').muted"))
      try browser.click("Turn the sound on")
      #expect(!browser.isTrue("document.querySelector('video').muted"))
      let hears = eventually(within: 30) { (browser.number(Self.sound) ?? 0) > 0.001 }
      #expect(hears, "\(browser.number(Self.sound) ?? -1)")
      let complaints = try Self.complaints(browser)
      #expect(complaints == [], "\(complaints)")

      // A rotation comes in the stream: the session stays.
      try browser.run("window.before = nightjar.connection")
      _ = try program.control("rotate", "90")
      let isRotated = eventually(within: 30) { browser.number("document.querySelector('video').videoWidth") == 240 }
      #expect(isRotated && browser.isTrue("window.before === nightjar.connection"))

      #expect(try program.viewerKinds().contains("webrtc"), "\(program.process.errorSoFar)")
      // Closed, the page says goodbye.
      try browser.open("about:blank")
      let isGone = eventually(within: 30) { !program.process.log.ends(ofViewers: "webrtc").isEmpty }
      #expect(isGone, "\(program.process.errorSoFar)")
    }

    @Test func `a dead line rings until somebody has heard it, and comes back by itself`() throws {
      let program = try WatchedProgram()
      let browser = try Browser(in: program.directory)
      try browser.open(program.url("/"))
      // A line that is dead by now, if only because the host is busy, rings at once.
      let isLive = eventually(within: 60) { browser.pictures > 10 && browser.text("nightjar.state") == "live" }
      try #require(isLive, "\(browser.page)")
      try browser.click("Wake me if the line fails")
      #expect(!browser.isTrue("nightjar.alarm.isSounding"))
      program.process.send(SIGSTOP)
      let rings = eventually(within: 50) { browser.isTrue("nightjar.alarm.isSounding") }
      #expect(rings, "\(browser.page)")
      let cause = "The camera's computer does not answer."
      #expect(eventually(within: 30) { browser.shown("#alarm-cause") == cause }, "\(browser.page)")
      program.process.send(SIGCONT)
      let pictures = browser.pictures
      let isBack = eventually(within: 60) { browser.text("nightjar.state") == "live" && browser.pictures > pictures }
      #expect(isBack, "\(browser.page)")
      // The person has not said yet that she is awake.
      #expect(browser.isTrue("nightjar.alarm.isSounding"))
      // Read right after the touch: a line that dies once more rings once more.
      try browser.run("addEventListener('click', () => { window.rings = nightjar.alarm.isSounding; }, { once: true })")
      try browser.click("I am awake")
      #expect(browser.isTrue("window.rings === false"))
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
      let isRefused = eventually { browser.shown(".complaint") == "This name and password are not known here." }
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

    @Test func `a phone watches by a link that works once, until it is shut out`() throws {
      let program = try WatchedProgram(users: ["anna": "correct horse"], isOpen: true)
      let made = try program.control("phone", "add", "--json")
      let code = try #require((try JSONSerialization.jsonObject(with: Data(made.utf8)) as? [String: Any]))
      let link = try #require((code["url"] as? String)?.split(separator: "/#").last)
      // The QR code is one for those who read QR codes: zbar.
      let bitmap = program.directory.path("code.pbm")
      try Self.bitmap(try #require(code["qr"] as? [String])).write(toFile: bitmap, atomically: false, encoding: .utf8)
      let read = try Subprocess.run(["zbarimg", "-q", "--raw", bitmap], in: program.directory)
      #expect(read.outputText.trimmingCharacters(in: .newlines) == code["url"] as? String, "\(read.error)")

      let browser = try Browser(in: program.directory)
      try browser.inject(PageFaults.lastingWords)
      try browser.open(program.url("/#\(link)"))
      try #require(eventually(within: 60) { browser.isTrue("document.querySelector('input[name=device]')") })
      try browser.run("document.querySelector('input[name=device]').value = ''")
      try browser.type("Ännas phone", into: "device")
      try browser.click("Watch on this device")
      #expect(eventually(within: 60) { browser.pictures > 10 }, "\(browser.page) \(program.process.errorSoFar)")
      #expect(try program.control("phone", "list") == "Annas-phone\n")
      let user = "phone Annas-phone"
      #expect(try program.viewers().contains { $0["user"] as? String == user })
      try browser.click("Viewers")
      // A destination may stand before the phone.
      let beginning = "\(user)browser · 127.0.0.1 · "
      let isListed = eventually { browser.shownTexts("dialog .viewers li").contains { $0.hasPrefix(beginning) } }
      #expect(isListed, "\(browser.page)")
      try browser.click("Close")
      #expect(!browser.isTrue("location.href.includes('phone')"))
      // It may watch, and let nobody else in.
      // The page says it for four seconds, in which a busy machine may not look.
      let isTold = try eventually {
        try browser.click("Phones")
        return eventually(within: 10) { browser.notice == "You may watch, and change nothing." }
      }
      #expect(isTold, "\(browser.page)")

      try browser.open("about:blank")
      try browser.open(program.url("/#\(link)"))
      try #require(eventually(within: 60) { browser.isTrue("document.querySelector('input[name=device]')") })
      try browser.click("Watch on this device")
      let used = "This link is used, or older than ten minutes. Ask for another one."
      #expect(eventually { browser.shown(".complaint") == used }, "\(browser.page)")

      try browser.open("about:blank")
      try browser.open(program.url("/"))
      #expect(eventually(within: 60) { browser.pictures > 10 }, "\(browser.page)")
      _ = try program.control("phone", "remove", "Annas-phone")
      #expect(
        eventually(within: 60) { browser.notice == "You may not watch this camera any more." },
        "\(browser.page) \(program.process.errorSoFar)")
      #expect(try program.control("phone") == "no phones; let one in: nightjar ctl phone add\n")
    }

    @Test func `the terminal shows the QR code of the link for a phone`() throws {
      let program = try WatchedProgram(users: ["anna": "correct horse"], isOpen: true)
      let terminal = try Terminal.run(
        [nightjarPath, "ctl", "phone", "add", "--socket", program.directory.path("control")], in: program.directory)
      #expect(terminal.status == 0, "\(terminal.shown)")
      let bitmap = program.directory.path("code.pbm")
      try #require(terminal.code).write(toFile: bitmap, atomically: false, encoding: .utf8)
      let read = try Subprocess.run(["zbarimg", "-q", "--raw", bitmap], in: program.directory)
      let link = read.outputText.trimmingCharacters(in: .newlines)
      #expect(link.contains("/#phone=") && terminal.shown.contains("\n\(link)\n"), "\(terminal.shown) \(read.error)")
    }

    @Test func `the page shows the code for the next phone to who may change things`() throws {
      let program = try WatchedProgram(users: ["anna": "correct horse"], isOpen: true)
      program.awaitPicture(["-u", "anna:correct horse"])
      let made = try program.control("phone", "add", "--control", "--json")
      let code = try #require((try JSONSerialization.jsonObject(with: Data(made.utf8)) as? [String: Any]))
      let link = try #require((code["url"] as? String)?.split(separator: "/#").last)
      let browser = try Browser(in: program.directory)
      try browser.open(program.url("/#\(link)"))
      try #require(eventually(within: 60) { browser.isTrue("document.querySelector('input[name=device]')") })
      try browser.click("Watch on this device")
      try #require(eventually(within: 60) { browser.pictures > 10 }, "\(browser.page)")
      try browser.click("Phones")
      try #require(eventually { browser.isTrue("document.querySelector('dialog li button')") }, "\(browser.page)")
      try browser.click("Let another phone in")
      #expect(eventually { browser.isTrue("document.querySelector('dialog svg path')") }, "\(browser.page)")
      // What a camera sees of it.
      let picture = program.directory.path("page.png")
      try browser.screenshot(to: picture)
      let read = try Subprocess.run(["zbarimg", "-q", "--raw", picture], in: program.directory)
      let url = browser.text("document.querySelector('dialog .link').textContent")
      #expect(read.outputText.trimmingCharacters(in: .newlines) == url, "\(read.error)")
      try browser.click("Shut out")
      #expect(
        eventually(within: 60) { browser.notice == "You may not watch this camera any more." },
        "\(browser.page) \(program.process.errorSoFar)")
      // The page asks once more by its log-in, as it is shut out.
      #expect(try Self.complaints(browser).filter { !$0.contains("status of 401") } == [])
    }

    @Test func `the page by plain HTTP is for this host alone`() throws {
      let port = try TCPPort.free()
      let program = try WatchedProgram(["--http", "0.0.0.0:\(port)"], users: ["anna": "correct horse"])
      let browser = try Browser(in: program.directory)
      try browser.open("http://localhost:\(port)/")
      #expect(eventually(within: 60) { browser.pictures > 10 }, "\(browser.page) \(program.process.errorSoFar)")
      // Directly and by its own name; neither through a proxy, nor for a page of another site, nor to change anything.
      func status(_ arguments: [String] = [], path: String = "/") throws -> String {
        try Subprocess.run(
          ["curl", "-s", "-o", "/dev/null", "-w", "%{http_code}"] + arguments + ["http://127.0.0.1:\(port)\(path)"],
          in: program.directory
        ).outputText
      }
      #expect(try status() == "200")
      #expect(try status(["-H", "X-Forwarded-For: 192.0.2.7"]) == "404")
      #expect(try status(["-H", "Host: box.example"]) == "404")
      let offer = ["-X", "POST", "-H", "Content-Type: application/sdp", "-d", "v=0"]
      #expect(try status(offer, path: "/whep") == "400")
      #expect(
        try status(offer + ["-H", "Origin: https://evil.example"], path: "/whep") == "403")
      #expect(
        try status(offer + ["-H", "Host: box.example"], path: "/whep") == "404")
      #expect(try status(["-X", "PUT", "-d", #"{"degrees":90}"#], path: "/v1/orientation") == "404")
    }

    @Test func `a browser that trusts the host's authority does not warn`() throws {
      let program = try WatchedProgram()
      let directory = program.directory
      func nightjar(_ words: String...) throws -> Subprocess.Result {
        try Subprocess.run(
          [nightjarPath] + words, in: directory, environment: ["STATE_DIRECTORY": directory.path("state")])
      }
      #expect(try nightjar("certificate").status == 66)
      #expect(try program.curl([], "/ca.crt").status == 404)
      let made = try nightjar("certificate", "make")
      #expect(made.status == 0, "\(made.error)")
      let authority = directory.path("authority.pem")
      try nightjar("certificate", "show", "--pem").output.write(to: URL(fileURLWithPath: authority))
      // The stream that runs takes it over; nobody reloads it.
      let isTaken = eventually(within: 60) {
        (try? Subprocess.run(
          ["curl", "-sS", "--cacert", authority, "-o", "/dev/null", program.url("/healthz")], in: directory
        ).status) == 0
      }
      #expect(isTaken, "\(program.process.errorSoFar)")
      let shown = try Subprocess.run(
        ["openssl", "x509", "-in", authority, "-noout", "-fingerprint", "-sha256"], in: directory)
      let fingerprint = try #require(shown.outputText.split(separator: "=").last).trimmingCharacters(in: .newlines)
      #expect(made.outputText.contains(fingerprint), "\(made.outputText)")
      let got = directory.path("ca.crt")
      _ = try Subprocess.run(["curl", "-sk", "-o", got, program.url("/ca.crt")], in: directory)
      let read = try Subprocess.run(
        ["openssl", "x509", "-inform", "der", "-in", got, "-noout", "-text"], in: directory)
      #expect(read.outputText.contains("CA:TRUE, pathlen:0") && read.outputText.contains("Permitted:"), "\(read.error)")

      let trusting = try Browser(in: directory, trusting: authority)
      try trusting.open(program.url("/"))
      #expect(eventually(within: 60) { trusting.pictures > 10 }, "\(trusting.page) \(program.process.errorSoFar)")
      let other = try TemporaryDirectory()
      let strange = other.path("strange.pem")
      let openssl = [
        "openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-subj",
        "/CN=other",
        "-keyout", other.path("key.pem"), "-out", strange,
      ]
      #expect(try Subprocess.run(openssl, in: other).status == 0)
      let doubting = try Browser(in: other, trusting: strange)
      try doubting.open(program.url("/"))
      #expect(doubting.page.contains("ERR_CERT_AUTHORITY_INVALID"), "\(doubting.page)")
      #expect(!doubting.isTrue("document.getElementById('app')"))
    }

    @Test func `a user who is added while the program runs may watch at once`() throws {
      let program = try WatchedProgram(users: ["anna": "correct horse"])
      #expect(try program.curl(["-u", "bert:looking glass"], "/v1/status").status == 401)
      try UsersFile.add("bert", "looking glass", in: program.directory)
      // The time that a wrong log-in waits comes on top.
      #expect(eventually(within: 60) { (try? program.curl(["-u", "bert:looking glass"], "/v1/status").status) == 200 })
      #expect(try program.curl(["-u", "anna:correct horse"], "/v1/status").status == 200)
      // A file that is broken changes nothing. The line is appended: a file that is written anew has no users at first.
      let file = try #require(FileHandle(forWritingAtPath: program.directory.path("users")))
      _ = try file.seekToEnd()
      try file.write(contentsOf: Data("carl\n".utf8))
      try file.close()
      let (start, end) = ("the changed users, tokens or certificates do not apply: ", "; those before still do")
      let isTold = eventually(within: 60) {
        program.process.log.lines.contains { $0.hasPrefix(start) && $0.hasSuffix(end) }
      }
      #expect(isTold, "\(program.process.errorSoFar)")
      #expect(try program.curl(["-u", "bert:looking glass"], "/v1/status").status == 200)
    }

    /// A picture of a QR code: a portable bitmap, eight dots a module, four light modules around.
    private static func bitmap(_ rows: [String]) -> String {
      let (quiet, scale) = (4, 8)
      let width = rows.count + 2 * quiet
      let empty = String(repeating: "0", count: width)
      let side = String(repeating: "0", count: quiet)
      let modules =
        Array(repeating: empty, count: quiet) + rows.map { side + $0 + side } + Array(repeating: empty, count: quiet)
      let lines = modules.flatMap { row in
        Array(repeating: row.map { String(repeating: "\($0) ", count: scale) }.joined(), count: scale)
      }
      return "P1\n\(width * scale) \(width * scale)\n" + lines.joined(separator: "\n") + "\n"
    }
  }
#endif
