import Foundation
import TestSupport
import Testing

/// The stream as players see it by RTSP, through the whole program.
@Suite(.serialized) struct RTSPPlayerTests {
  @Test func `ffmpeg and GStreamer play over UDP and TCP, all at once`() throws {
    let program = try ServedProgram()
    var ffmpeg: [Subprocess] = []
    var gstreamer: [Subprocess] = []
    for transport in ["udp", "tcp"] {
      ffmpeg.append(try program.ffmpeg(program.url(), transport: transport))
      gstreamer.append(try program.gstreamer(program.url(), protocols: transport))
    }
    // Without a choice of its own: UDP first.
    ffmpeg.append(try program.ffmpeg(program.url(), transport: nil))
    for process in ffmpeg { try expectDecoded(process) }
    for process in gstreamer { try expectPlayed(process) }
    let result = try program.end()
    #expect(result.status == 0, "\(result.error)")
  }

  @Test(.enabled(if: hasIPv6, "needs IPv6"), arguments: ["udp", "tcp"])
  func `players come by IPv6`(transport: String) throws {
    let program = try ServedProgram(address: "::1")
    try expectDecoded(try program.ffmpeg(program.url("[::1]"), transport: transport))
    try expectPlayed(try program.gstreamer(program.url("[::1]"), protocols: transport))
  }

  @Test(.enabled(if: OwnNetwork.isPossible, "needs user namespaces, ip and nsenter"))
  func `players share a multicast group`() throws {
    let directory = try TemporaryDirectory()
    let holder = try Subprocess(OwnNetwork.holder, in: directory)
    defer { holder.send(SIGKILL) }
    #expect(eventually { holder.outputSoFar.contains("ready") })
    let network = OwnNetwork.entering(holder)
    let program = try ServedProgram(["--rtsp-multicast", "239.1.2.3:5004"], network: network)
    // Of one kind: at anybody's BYE in the group ffmpeg ends, and GStreamer says one when it leaves.
    let first = try program.ffmpeg(program.url(), transport: "udp_multicast", network: network)
    let second = try program.ffmpeg(program.url(), transport: "udp_multicast", network: network)
    try expectDecoded(first)
    try expectDecoded(second)
    // Others, after all have left.
    try expectPlayed(try program.gstreamer(program.url(), protocols: "udp-mcast", network: network))
    try expectDecoded(try program.ffmpeg(program.url(), transport: "udp_multicast", network: network))
  }

  @Test func `a user with the password gets the picture, and nobody else does`() throws {
    let program = try ServedProgram(users: ["alice": "wonder land"])
    let right = try program.ffmpeg(program.url(user: "alice:wonder%20land@"))
    let second = try program.gstreamer(
      program.url(), protocols: "udp", options: "user-id=alice user-pw=\"wonder land\"")
    try expectDecoded(right)
    try expectPlayed(second)
    for user in ["alice:wrong@", "bob:wonder%20land@", ""] {
      let result = try program.ffmpeg(program.url(user: user)).wait(limit: 60)
      #expect(result.status != 0)
      #expect(result.error.contains("401"), "\(result.error)")
    }
    try expectDecoded(try program.ffmpeg(program.url(user: "alice:wonder%20land@"), transport: "udp"))
  }

  @Test func `as many sessions as --rtsp-sessions says, and one more is told so`() throws {
    let program = try ServedProgram(["--rtsp-sessions", "2"])
    // Without an end of their own: the places are taken until the players leave.
    let players = try (0..<2).map { _ in try program.ffmpeg(program.url(), frames: 100_000) }
    #expect(eventually { players.allSatisfy { $0.errorSoFar.contains("320x240") } })
    let refused = try program.ffmpeg(program.url()).wait(limit: 60)
    #expect(refused.status != 0)
    #expect(refused.error.contains("503"), "\(refused.error)")
    #expect(eventually { program.process.errorSoFar.contains("all 2 sessions are in use; try again later") })
    players[0].send(SIGTERM)
    _ = try players[0].wait(limit: 60)
    #expect(eventually { program.process.log.ends(ofViewers: "rtsp").count == 1 }, "\(program.process.errorSoFar)")
    try expectDecoded(try program.ffmpeg(program.url()))
    players[1].send(SIGTERM)
    _ = try players[1].wait(limit: 60)
  }

  @Test func `a viewer for whom the system has no socket is told so, and so is the log`() throws {
    let program = try ServedProgram()
    let client = try RTSPClient(port: program.port)
    let ports = try DatagramPair()
    let setup = try client.request("SETUP", client.url + "/trackID=0", ["Transport: \(ports.transport)"])
    let session = try #require(setup.session)
    func limit(_ descriptors: Int) throws {
      let result = try Subprocess.run(
        ["prlimit", "--pid", "\(program.process.identifier)", "--nofile=\(descriptors):"], in: program.directory)
      try #require(result.status == 0, "\(result.error)")
    }
    // The program has more of them open already.
    try limit(8)
    let play = try client.request("PLAY", nil, ["Session: \(session)"])
    try limit(1024)
    let reason = "cannot send: socket: Too many open files"
    #expect(play.status == 503 && play.body == "\(reason)\r\n", "\(play)")
    #expect(eventually { program.process.errorSoFar.contains("a request of 127.0.0.1 refused: \(reason)") })
    // It lasts no longer than that.
    _ = try client.play(ports.transport)
    #expect(ports.take(5).count >= 5)
  }

  /// The address that others know this machine by, as `ip` has it.
  private static let outward: String? = {
    guard let directory = try? TemporaryDirectory(),
      let result = try? Subprocess.run(["ip", "-4", "route", "get", "192.0.2.1"], in: directory), result.status == 0
    else { return nil }
    let words = result.outputText.split(whereSeparator: \.isWhitespace)
    return words.firstIndex(of: "src").flatMap { words.indices.contains($0 + 1) ? String(words[$0 + 1]) : nil }
  }()

  @Test(.enabled(if: outward != nil, "needs ip and a way to others"))
  func `where it listens on all addresses, a URL is shown that needs no name to be known`() throws {
    let address = try #require(Self.outward)
    let program = try ServedProgram(address: "0.0.0.0", users: ["alice": "wonder land"])
    // Those with a name come first.
    func isShown() -> Bool { program.process.log.values(of: "rtsp").contains(program.url(address)) }
    #expect(
      eventually { isShown() && program.process.errorSoFar.contains("@\(address):\(program.port)/camera") },
      "\(program.process.errorSoFar)")
    let shown = program.process.errorSoFar
    #expect(ProgramLog(shown).values(of: "rtsp").count { $0 == program.url(address) } == 1, "\(shown)")
    #expect(shown.contains("@\(address):\(program.port)/camera"), "\(shown)")
    try expectDecoded(try program.ffmpeg(program.url(address, user: "alice:wonder%20land@")))
  }

  @Test(.enabled(if: OwnNetwork.isPossible, "needs user namespaces, ip and nsenter"))
  func `in a network without a router, URLs of RTSP and HTTP have the address of an interface`() throws {
    let directory = try TemporaryDirectory()
    let holder = try Subprocess(OwnNetwork.holder, in: directory)
    defer { holder.send(SIGKILL) }
    #expect(eventually { holder.outputSoFar.contains("ready") })
    let network = OwnNetwork.entering(holder)
    let added = try Subprocess.run(network + ["ip", "addr", "add", "10.9.8.7/24", "dev", "lo"], in: directory)
    try #require(added.status == 0, "\(added.error)")
    let program = try ServedProgram(
      ["--http", "0.0.0.0:8080"], address: "0.0.0.0", network: network, users: ["alice": "wonder land"])
    func isShown(_ heading: String, _ url: String) -> Bool { program.process.log.values(of: heading).contains(url) }
    let url = program.url("10.9.8.7")
    #expect(eventually { isShown("rtsp", url) }, "\(program.process.errorSoFar)")
    #expect(eventually { isShown("http", "http://10.9.8.7:8080/stream.mjpg") }, "\(program.process.errorSoFar)")
    // The commands to paste, too: they come behind the URLs.
    let end = "rtsp://NAME:PASSWORD@10.9.8.7:\(program.port)/camera"
    #expect(
      eventually { program.process.log.commands(for: "ffplay").contains { $0.hasSuffix(end) } },
      "\(program.process.errorSoFar)")
    try expectDecoded(
      try program.ffmpeg(program.url("10.9.8.7", user: "alice:wonder%20land@"), network: network))
  }

  @Test func `rtsps by a certificate of its own`() throws {
    let program = try ServedProgram(option: "--rtsps", users: ["alice": "looking glass"])
    #expect(eventually { program.process.errorSoFar.contains("SHA-256") }, "\(program.process.errorSoFar)")
    try expectDecoded(try program.ffmpeg(program.url(scheme: "rtsps", user: "alice:looking%20glass@")))
    try expectPlayed(
      try program.gstreamer(
        program.url(scheme: "rtsps"), protocols: "tcp+tls",
        options: "tls-validation-flags=0 user-id=alice user-pw=\"looking glass\""))
    // Plain text to it gets nowhere, and harms nobody.
    let client = try RTSPClient(port: program.port)
    client.send(client.text("OPTIONS").utf8)
    #expect(client.waitForClose())
    try expectDecoded(try program.ffmpeg(program.url(scheme: "rtsps", user: "alice:looking%20glass@")))
  }

  @Test func `rtsps by a certificate that a player can check`() throws {
    let directory = try TemporaryDirectory()
    let (certificate, key) = (directory.path("c.pem"), directory.path("k.pem"))
    let made = try Subprocess.run(
      [
        "openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes", "-days", "2",
        "-subj", "/CN=localhost", "-addext", "subjectAltName=DNS:localhost,IP:127.0.0.1", "-keyout", key, "-out",
        certificate,
      ], in: directory)
    #expect(made.status == 0, "\(made.error)")
    chmod(key, 0o600)
    let program = try ServedProgram(["--tls-cert", certificate, "--tls-key", key], option: "--rtsps")
    let check = try Subprocess.run(
      [
        "sh", "-c",
        "echo | openssl s_client -connect 127.0.0.1:\(program.port) -verify_return_error -CAfile \(certificate)",
      ], in: directory)
    let codes = check.outputText.split(separator: "\n").compactMap { line in
      line.firstMatch(of: /^ *Verify return code: (\d+)/).flatMap { Int($0.output.1) }
    }
    #expect(!codes.isEmpty && codes.allSatisfy { $0 == 0 }, "\(check.outputText)\(check.error)")
    let old = try Subprocess.run(
      ["sh", "-c", "echo | openssl s_client -connect 127.0.0.1:\(program.port) -tls1_1 -cipher ALL:@SECLEVEL=0"],
      in: directory)
    // The alert is the server's (RFC 5246 section 7.2.2).
    #expect(old.status != 0 && old.error.contains("alert protocol version"), "\(old.outputText)\(old.error)")
    try expectDecoded(try program.ffmpeg(program.url(scheme: "rtsps")))
  }

  @Test func `a player continues through a rotation, and a new player gets the new parameter sets`() throws {
    let program = try ServedProgram()
    let before = try RTSPClient(port: program.port).request("DESCRIBE").body
    // Nobody encodes while nobody watches: the rotation needs a viewer.
    let player = try program.ffmpeg(program.url(), frames: 300, options: ["-autorotate", "0"])
    #expect(eventually { player.errorSoFar.contains("frame=") })
    _ = try program.control("rotate", "90")
    func sets(_ description: String) -> String? {
      description.split(whereSeparator: \.isNewline).first { $0.contains("sprop-parameter-sets=") }.map(String.init)
    }
    #expect(sets(before) != nil)
    // The answer to the command comes without the rotation where the encoder of a busy machine is late.
    let isNew = try eventually {
      let after = sets(try RTSPClient(port: program.port).request("DESCRIBE").body)
      return after != nil && after != sets(before)
    }
    #expect(isNew)
    try expectDecoded(player)
    try expectDecoded(try program.ffmpeg(program.url()), size: "240x320")
    try expectPlayed(try program.gstreamer(program.url(), protocols: "udp"))
  }

  @Test func `a rotation without viewers is in the description and the stream`() throws {
    let program = try ServedProgram()
    _ = try program.control("rotate", "90")
    try expectDecoded(try program.ffmpeg(program.url()), size: "240x320")
  }

  @Test func `the encoder rests until somebody watches, unless it is told to work`() throws {
    func encoded(_ program: ServedProgram) throws -> Int {
      let text = try program.control("status", "--json")
      let status = try JSONSerialization.jsonObject(with: Data(text.utf8)) as? [String: Any]
      let camera = (status?["cameras"] as? [[String: Any]])?.first
      let frames = try #require(camera?["frames"] as? [String: Any], "\(text)")
      return try #require(frames["encoded"] as? Int, "\(text)")
    }
    let resting = try ServedProgram()
    usleep(700_000)
    #expect(try encoded(resting) == 0)
    try expectDecoded(try resting.ffmpeg(resting.url()))
    #expect(try encoded(resting) > 0)
    let working = try ServedProgram(["--always-encode"])
    #expect(try eventually { try encoded(working) > 5 })
    try expectDecoded(try working.ffmpeg(working.url()))
  }
}

/// Messages of the command line where RTSP cannot be had as it was asked for.
@Suite(.serialized) struct RTSPCommandLineTests {
  private func stream(_ arguments: [String], in directory: TemporaryDirectory) throws -> Subprocess.Result {
    try Subprocess.run(
      [nightjarPath, "stream", "--source", "test", "--size", "320x240", "--control", "none", "--duration", "5s"]
        + arguments, in: directory, limit: 60)
  }

  @Test(
    .enabled(if: !FileManager.default.fileExists(atPath: "/etc/nightjar/users"), "this machine has users"),
    arguments: ["0.0.0.0:18554", "[::]:18554", "192.0.2.1"])
  func `without users nobody else is let in, and it says how`(address: String) throws {
    let directory = try TemporaryDirectory()
    let result = try stream(["--rtsp", address], in: directory)
    #expect(result.status == 64)
    let host = address.hasPrefix("[") ? "::" : String(address.prefix { $0 != ":" })
    #expect(
      result.log.failures == [
        "without users only this host may watch, and \(host) is open to others: add one with: nightjar user add NAME"
      ])
  }

  @Test func `a users file that others can read is refused`() throws {
    let directory = try TemporaryDirectory()
    let file = directory.path("users")
    try Data().write(to: URL(fileURLWithPath: file))
    chmod(file, 0o644)
    let result = try stream(["--rtsp", "--users", file], in: directory)
    #expect(result.status != 0)
    #expect(result.error.contains(file) && result.error.contains("chmod"), "\(result.error)")
  }

  @Test func `a port that another program has is told in one line`() throws {
    let directory = try TemporaryDirectory()
    let listener = try TCPListener()
    let result = try stream(["--rtsp", "127.0.0.1:\(listener.port)"], in: directory)
    #expect(result.status == 75)
    let complaints = result.error.split(separator: "\n").filter { $0.contains("\(listener.port)") }
    #expect(
      complaints == [
        "nightjar: cannot listen for RTSP at 127.0.0.1 port \(listener.port): another program listens there; choose "
          + "another port, or end that program (sudo ss -ltnp sport = :\(listener.port) shows it)"
      ])
    withExtendedLifetime(listener) {}
  }

  @Test(arguments: [
    ["--users", "x"], ["--rtsp-multicast", "239.1.2.3:5004"], ["--always-encode"], ["--rtsps", "--tls-cert", "x"],
    ["--rtsp", "--rtsp-multicast", "10.0.0.1:5004"], ["--rtsp", "--name", "a/b"],
  ])
  func `an option that would have no effect, or no meaning, is refused`(arguments: [String]) throws {
    let directory = try TemporaryDirectory()
    #expect(try stream(arguments, in: directory).status == 64)
  }
}
