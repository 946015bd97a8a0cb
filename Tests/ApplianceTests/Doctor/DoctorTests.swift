import Foundation
import Serving
import TestSupport
import Testing

/// `nightjar doctor` on this machine: each problem that needs no camera is provoked, and what it says is done about it.
@Suite(.serialized) struct DoctorTests {
  static let isRoot = geteuid() == 0
  /// The words that make root somebody without rights; whoever else runs this is that already.
  static let nobody = isRoot ? ["setpriv", "--reuid=65534", "--regid=65534", "--clear-groups"] : []
  /// A stream that any machine can do.
  static let small = ["--source", "test", "--size", "320x240", "--fps", "15"]

  private let directory: TemporaryDirectory

  init() throws {
    directory = try TemporaryDirectory()
    // For nobody too.
    #expect(chmod(directory.url.path, 0o777) == 0)
  }

  private func doctor(
    _ options: [String], own: [String] = [], before: [String] = [], environment: [String: String] = [:]
  ) throws -> DoctorReport {
    let report = try DoctorReport(options, own: own, before: before, environment: environment, in: directory)
    #expect(report.exitCode == (report.status == "problem" ? 1 : 0))
    for finding in report.findings where finding.status != "ok" { #expect(!finding.mends.isEmpty, "\(finding)") }
    return report
  }

  /// Expects a problem; what mends it.
  private func problem(_ key: String, in report: DoctorReport) throws -> DoctorReport.Finding {
    let finding = try #require(report[key], "\(report.findings)")
    #expect(finding.status == "problem" && report.exitCode == 1)
    return finding
  }

  private func write(_ name: String, _ text: String, mode: mode_t = 0o644) throws -> String {
    let path = directory.path(name)
    try Data(text.utf8).write(to: URL(fileURLWithPath: path))
    #expect(chmod(path, mode) == 0)
    return path
  }

  #if X264
    @Test func `a healthy host is reported, as text and as JSON`() throws {
      let report = try doctor(Self.small + ["--encoder", "x264"])
      #expect(report.exitCode == 0, "\(report.findings)")
      #expect(report["camera"]?.text.contains("synthetic") == true)
      let encoder = try #require(report["encoder"])
      #expect(encoder.figures["headroom_percent"] != nil && encoder.text.contains("320x240"), "\(encoder)")
      // The goal is 15 s, and nobody holds a clock to a machine that does other things too.
      #expect(report.seconds < 150)
      let text = try Subprocess.run(
        [nightjarPath, "doctor", "--config", "none", "--socket", directory.path("none"), "--"] + Self.small,
        in: directory)
      #expect(text.status == 0)
      let lines = text.outputText.split(separator: "\n")
      let found = lines.count { $0.hasPrefix("ok       ") }
      #expect(lines.contains { $0.hasPrefix("ok       camera") })
      #expect(lines.last?.components(separatedBy: ", ").last == "\(found) ok", "\(text.outputText)")
      #expect(text.error.isEmpty, "no progress where nobody watches: \(text.error)")
    }

    @Test func `an encoder that is too slow is told, and a cheaper one is not`() throws {
      let size = ["--source", "test", "--size", "1920x1080", "--fps", "60", "--encoder", "x264", "--x264-preset"]
      let slow = try problem("encoder-slow", in: doctor(size + ["veryslow"]))
      #expect(
        slow.figures["headroom_percent"] ?? 1 <= 0 && slow.mends.contains { $0.advice?.contains("ultrafast") == true })
      let mended = try doctor(Self.small + ["--encoder", "x264", "--x264-preset", "ultrafast"])
      #expect(!mended.has("encoder-slow"))
    }

    @Test(.enabled(if: isRoot && StrictVADriver.isBuilt))
    func `hardware that encodes is tried, and a user without permission is told the reason`() throws {
      let node = try write("renderD128", "", mode: 0o600)
      let options = Self.small + ["--vaapi-device", node]
      let variables = StrictVADriver.environment(node: node, log: directory.path("log"))
      let well = try doctor(options, environment: variables)
      #expect(well["vaapi"]?.text.contains("EncSlice") == true, "\(well.findings)")
      #expect(well["encoder"]?.text.hasPrefix("VA-API") == true)
      #expect(StrictVADriver.violations(in: directory.path("log")).isEmpty)
      let mode = try #require(try doctor(options, before: Self.nobody, environment: variables)["render-mode"])
      // The group that it names is not on every machine.
      let command = try #require(mode.commands.first)
      #expect(command == "sudo chgrp render \(node) && sudo chmod 660 \(node)")
      #expect(try runMend(command.replacingOccurrences(of: "render ", with: "games "), in: directory).status == 0)
      let report = try doctor(options, before: Self.nobody, environment: variables)
      #expect(report["render-group"]?.commands == ["sudo usermod -aG games nobody"], "\(report.findings)")
      #expect(report["encoder"]?.text.hasPrefix("x264") == true)
      let member = ["setpriv", "--reuid=65534", "--regid=65534", "--groups=60"]
      #expect(try doctor(options, before: member, environment: variables).has("vaapi"))
      // One who was put into the group after the login: games is, as a user, in games alone.
      let early = ["setpriv", "--reuid=games", "--regid=65534", "--clear-groups"]
      let login = try #require(try doctor(options, before: early, environment: variables)["render-login"])
      #expect(login.mends.first?.advice == "log out and in again; for one shell only: newgrp games")
    }

    @Test func `a missing encoder is reported, and auto works without it`() throws {
      let node = ["--vaapi-device", "/dev/dri/renderD199"]
      let missing = try problem("encoder-missing", in: doctor(Self.small + node + ["--encoder", "vaapi"]))
      #expect(missing.mends.contains { $0.advice?.contains("auto") == true })
      let mended = try doctor(Self.small + node)
      #expect(!mended.has("encoder-missing") && mended.has("vaapi-unusable") && mended.has("encoder"))
    }
  #endif

  @Test func `a mistake in the file is reported, the host is checked all the same, and config check agrees`() throws {
    let file = try write("nightjar.toml", "bitrat = 5\n")
    let report = try doctor([], own: ["--config", file])
    let broken = try problem("configuration-broken", in: report)
    #expect(broken.text.contains("\(file):1") && report.has("temperature") && !report.has("camera"))
    let checked = try runMend(try #require(broken.commands.first), in: directory)
    #expect(checked.status == 65 && checked.error.contains(broken.text))
    _ = try write("nightjar.toml", "bitrate = \"500k\"\nsource = \"test\"\nsize = \"320x240\"\n")
    let mended = try doctor([], own: ["--config", file])
    #expect(mended.has("configuration") && !mended.has("configuration-broken") && mended.has("camera"))
    let missing = try problem("configuration-broken", in: doctor([], own: ["--config", directory.path("none.toml")]))
    #expect(missing.text.contains("none.toml"))
    // Named behind the --, it is the same file; and what was typed is not looked for in it.
    _ = try write("nightjar.toml", "bitrat = 5\n")
    let behind = try problem("configuration-broken", in: doctor(["--config", file]))
    #expect(behind.commands == ["nightjar config check --config \(file)"])
    let typed = try problem("configuration-broken", in: doctor(["--bitrat", "5"], own: ["--config", file]))
    #expect(typed.commands == ["nightjar config check --config \(file)"], "the file's mistake comes first: \(typed)")
    // What is no mistake, but looks like one: the file is there.
    _ = try write("users", "")
    _ = try write("nightjar.toml", "source = \"test\"\nrtsp = \"127.0.0.1:18554\"\nusers = \"users\"\n")
    let relative = try #require(try doctor([], own: ["--config", file])["configuration-remark"])
    #expect(relative.text.contains("\(file):3") && relative.text.contains("users"))
    let told = try runMend(
      try #require(relative.commands.first), before: ["env", "-C", directory.url.path], in: directory)
    #expect((told.outputText + told.error).contains(relative.text), "\(told)")
    _ = try write("nightjar.toml", "source = \"test\"\n")
    #expect(try !doctor([], own: ["--config", file]).has("configuration-remark"))
    let wrong = try problem("configuration-broken", in: doctor(["--bitrat", "5"], own: ["--config", file]))
    #expect(wrong.commands == ["nightjar stream --help"], "\(wrong)")
  }

  @Test func `a missing camera is reported, and so is a file that is no camera`() throws {
    let missing = try problem("camera-missing", in: doctor(["--source", "/dev/video63"]))
    #expect(missing.text.contains("/dev/video63") && missing.commands == ["nightjar devices"])
    #expect(try runMend(missing.commands[0], in: directory).status == 0)
    #expect(try doctor(["--source", "/dev/video63", "--wait"]).has("camera-awaited"))
    let other = try problem("camera-other", in: doctor(["--source", try write("file", "")]))
    #expect(other.commands == ["nightjar devices"])
    let clip = try problem("camera-missing", in: doctor(["--source", "file:/no/such.y4m"]))
    #expect(clip.text.contains("/no/such.y4m"))
    let broken = try problem("camera-unusable", in: doctor(["--source", "file:\(directory.path("file"))"]))
    #expect(!broken.text.isEmpty)
    if !FileManager.default.fileExists(atPath: "/dev/video0") {
      #expect(try #require(try doctor(["--size", "320x240"])["camera-none"]).commands == ["nightjar devices"])
    }
    let mended = try doctor(Self.small)
    #expect(!mended.has("camera-missing") && !mended.has("camera-other") && !mended.has("camera-unusable"))
  }

  @Test func `a port in use is reported with the program that holds it, and is free after that program ends`() throws {
    // One of the kernel's choice could be another program's as soon as this one ends.
    let number = try TCPPort.free()
    let holder = try Subprocess(
      [
        "python3", "-c",
        // What starts it has signals blocked, which it would inherit.
        "import signal,socket,time;signal.pthread_sigmask(signal.SIG_SETMASK,[]);"
          + "s=socket.socket();s.bind(('127.0.0.1',\(number)));s.listen();print(s.getsockname()[1],flush=True);"
          + "time.sleep(600)",
      ], in: directory)
    defer { holder.send(SIGKILL) }
    #expect(eventually { holder.outputSoFar.contains("\n") })
    let port = holder.outputSoFar.trimmingCharacters(in: .newlines)
    let options = Self.small + ["--rtsp", "127.0.0.1:\(port)"]
    let held = try problem("port-held", in: doctor(options))
    #expect(
      held.text == "rtsp at 127.0.0.1 port \(port): python3 (process \(holder.identifier)) listens there", "\(held)")
    #expect(held.commands == ["kill \(holder.identifier)"])
    #expect(try runMend(held.commands[0], in: directory).status == 0)
    #expect(try holder.wait(limit: 30).status == SIGTERM)
    let mended = try doctor(options)
    #expect(mended["port"]?.text == "rtsp at 127.0.0.1 port \(port): free" && !mended.has("port-held"))
  }

  @Test func `a port below 1024 is told to who may not have it`() throws {
    let first = try KernelFile.text("/proc/sys/net/ipv4/ip_unprivileged_port_start")
    guard let first = Int(first.trimmingCharacters(in: .newlines)), first > 554 else { return }
    let low = try problem(
      "port-low", in: doctor(Self.small + ["--rtsp", "127.0.0.1:554"], before: Self.nobody))
    // The port of its advice, at the same address.
    let advice = try #require(low.mends.first?.advice)
    let other = try #require(advice.firstMatch(of: /rtsp = "(127\.0\.0\.1:[0-9]+)"/)?.output.1)
    let report = try doctor(Self.small + ["--rtsp", String(other)], before: Self.nobody)
    #expect(!report.has("port-low"))
  }

  @Test func `an address open to other hosts is reported until a user exists`() throws {
    let options = Self.small + ["--rtsp", "0.0.0.0:18554"]
    let needed = try problem("users-needed", in: doctor(options, before: Self.nobody))
    let command = try #require(needed.commands.first).replacingOccurrences(of: "NAME", with: "alice")
    let added = try runMend(command, input: "long enough\n", before: Self.nobody, in: directory)
    #expect(added.status == 0, "\(added.error)")
    // The file that is named is the one that it is put into.
    let file = directory.path("own users")
    let other = try doctor(options + ["--users", file], before: Self.nobody)
    let adding = "nightjar user add NAME --users '\(file)'"
    #expect(other.findings.contains { $0.commands == [adding] }, "\(other.findings)")
    let mended = try doctor(options, before: Self.nobody)
    #expect(mended["users"]?.figures["users"] == 1 && !mended.has("users-needed"), "\(mended.findings)")
  }

  @Test func `files with users and tokens that others can read are told, and closed`() throws {
    let hash = String(repeating: "a", count: 64)
    let users = try write("users", "bob:SHA-256=\(hash)\n")
    let tokens = try write("tokens", "doorbell:token-sha256=\(hash)\n")
    let options = Self.small + ["--https", "127.0.0.1:18443", "--users", users, "--tokens", tokens]
    let report = try doctor(options)
    for key in ["users-file", "tokens-file"] {
      let finding = try problem(key, in: report)
      #expect(try runMend(try #require(finding.commands.first), in: directory).status == 0)
    }
    let mended = try doctor(options)
    #expect(mended.has("users") && mended.has("tokens") && !mended.has("users-file") && !mended.has("tokens-file"))
    _ = try write("users", "bob\n", mode: 0o600)
    let fault = UsersFileSyntaxError(line: 1, reason: .noHash(try UserName("bob")))
    let text = try problem("users-file", in: doctor(options)).text
    #expect(text == UsersFileError.syntax(path: users, fault).description)
  }

  private func certificate(from start: String, until end: String) throws -> (path: String, key: String) {
    let settings = try write(
      "ca.cnf",
      """
      [ca]
      default_ca = own
      [own]
      database = \(directory.path("index.txt"))
      serial = \(directory.path("serial"))
      new_certs_dir = \(directory.url.path)
      default_md = sha256
      policy = any
      [any]
      commonName = supplied

      """)
    _ = try write("index.txt", "")
    _ = try write("serial", "01\n")
    let (path, key, request) = (directory.path("cert.pem"), directory.path("key.pem"), directory.path("request.pem"))
    for arguments in [
      ["genpkey", "-algorithm", "EC", "-pkeyopt", "ec_paramgen_curve:P-256", "-out", key],
      ["req", "-new", "-key", key, "-subj", "/CN=box", "-out", request],
      [
        "ca", "-batch", "-config", settings, "-selfsign", "-keyfile", key, "-in", request, "-notext", "-startdate",
        start,
        "-enddate", end, "-out", path,
      ],
    ] {
      let result = try Subprocess.run(["openssl"] + arguments, in: directory)
      #expect(result.status == 0, "\(result.error)")
    }
    #expect(chmod(key, 0o600) == 0)
    return (path, key)
  }

  @Test func `certificates are told that have expired, will come, end soon or cannot be read`() throws {
    func options(_ files: (path: String, key: String)) -> [String] {
      Self.small + ["--rtsps", "127.0.0.1:18322", "--tls-cert", files.path, "--tls-key", files.key]
    }
    let expired = try certificate(from: "20200101000000Z", until: "20210101000000Z")
    let finding = try problem("certificate-expired", in: doctor(options(expired)))
    #expect(finding.text.contains("2021-01-01") && finding.figures["days_left"] ?? 1 < 0)
    let early = try certificate(from: "20400101000000Z", until: "20410101000000Z")
    #expect(try problem("certificate-early", in: doctor(options(early))).text.contains("2040-01-01"))
    let formatter = ISO8601DateFormatter()
    formatter.formatOptions = [.withYear, .withMonth, .withDay, .withTime]
    let soon = formatter.string(from: Date(timeIntervalSinceNow: 10 * 86_400))
      .replacingOccurrences(of: "T", with: "")
    let ending = try doctor(
      options(certificate(from: "20200101000000Z", until: soon.hasSuffix("Z") ? soon : soon + "Z")))
    #expect(ending.has("certificate-soon"), "\(ending.findings)")
    // Renewed, all is well.
    let good = try certificate(from: "20200101000000Z", until: "20450101000000Z")
    let well = try doctor(options(good))
    #expect(well["certificate"]?.text.contains("2045-01-01") == true, "\(well.findings)")
    #expect(chmod(good.key, 0o644) == 0)
    let exposed = try problem("certificate-file", in: doctor(options(good)))
    #expect(try runMend(try #require(exposed.commands.first), in: directory).status == 0)
    #expect(try doctor(options(good)).has("certificate"))
    // One of our own is not made by looking.
    let own = try doctor(Self.small + ["--rtsps", "127.0.0.1:18322"])
    let plan = "nightjar makes its own at the first start: "
    #expect(own["certificate"]?.text.hasPrefix(plan) == true)
    #expect(!FileManager.default.fileExists(atPath: directory.path("state")))
  }

  @Test(.enabled(if: isRoot)) func `a state folder that is not ours is told, and made ours`() throws {
    let state = directory.path("state")
    try FileManager.default.createDirectory(atPath: state, withIntermediateDirectories: true)
    #expect(chmod(state, 0o700) == 0)
    let options = Self.small + ["--rtsps", "127.0.0.1:18322"]
    let closed = try problem("state-closed", in: doctor(options, before: Self.nobody))
    #expect(try runMend(try #require(closed.commands.first), in: directory).status == 0)
    let mended = try doctor(options, before: Self.nobody)
    #expect(mended.has("state") && !mended.has("state-closed"), "\(mended.findings)")
  }

  #if X264
    @Test func `the doctor asks a running stream, reports a silent one, and its command ends that stream`() throws {
      let socket = directory.path("control")
      let file = try write(
        "nightjar.toml",
        """
        [[camera]]
        name = "one"
        source = "test"
        size = "320x240"
        to = ["rtp://127.0.0.1:15004"]
        [[camera]]
        name = "two"
        source = "test"
        encoder = "vaapi"
        vaapi-device = "/dev/dri/renderD199"
        to = ["rtp://127.0.0.1:15014"]
        [[camera]]
        name = "three"
        source = "/dev/video63"
        size = "320x240"
        to = ["rtp://127.0.0.1:15024"]

        """)
      let stream = try Subprocess([nightjarPath, "stream", "--config", file, "--control", socket], in: directory)
      defer { stream.send(SIGKILL) }
      let own = ["--config", file, "--socket", socket]
      var report = try doctor([], own: own)
      #expect(
        try eventually(within: 120) {
          report = try doctor([], own: own)
          // A busy machine does not reach the rate, and a stream may stand still for the time of a measurement.
          let hasRate = report.findings.contains {
            ["rate", "rate-low"].contains($0.key) && $0.figures["fps"] ?? 0 > 3
          }
          return report.has("camera-absent") && hasRate || !stream.isRunning
        }, "\(report.findings) \(stream.errorSoFar)")
      let running = "nightjar stream runs (process \(stream.identifier)), "
      #expect(report["stream"]?.text.hasPrefix(running) == true, "\(report.findings)")
      let absent = try problem("camera-absent", in: report)
      let again = "nightjar ctl reload --socket \(socket)"
      #expect(absent.camera == "two" && absent.commands.count { $0 == again } == 1, "\(absent)")
      #expect(report.findings.contains { $0.key == "camera-awaited" && $0.camera == "three" })
      let rate = try #require(
        report.findings.first { $0.camera == "one" && ($0.key == "rate" || $0.key == "rate-low") })
      #expect(rate.figures["fps"] ?? 0 > 3)

      // The option that was wrong, and the command that it gave.
      _ = try write(
        "nightjar.toml",
        "[[camera]]\nname = \"one\"\nsource = \"test\"\nsize = \"320x240\"\nto = [\"rtp://127.0.0.1:15004\"]\n")
      let reload = absent.commands.last ?? ""
      let reloaded = try runMend(reload, in: directory)
      #expect(reloaded.status == 0, "\(reloaded.error)")
      #expect(eventually { (try? doctor([], own: own).has("camera-absent")) == false })

      stream.send(SIGSTOP)
      let silent = try problem("stream-silent", in: doctor([], own: own))
      #expect(silent.commands.last == "kill -9 \(stream.identifier)", "\(silent)")
      #expect(try runMend(silent.commands.last ?? "", in: directory).status == 0)
      _ = try stream.wait(limit: 60)
      let mended = try doctor([], own: own)
      #expect(mended["stream"]?.text == "none runs (no answer at \(socket))" && !mended.has("stream-silent"))
    }
  #endif
}
