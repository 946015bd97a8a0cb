#if X264
  import CLinux
  import Foundation
  import TestSupport
  import Testing

  /// `--http`: pictures, as curl, ffmpeg and GStreamer see them.
  @Suite(.serialized) struct PictureTests {
    private func write(_ data: Data, in program: LookedAtProgram) throws -> String {
      let file = program.directory.path("picture-\(UUID().uuidString).jpg")
      try data.write(to: URL(fileURLWithPath: file))
      return file
    }

    @Test func `a snapshot shows the camera's picture, in its colours, with nobody watching`() throws {
      let rtsp = "127.0.0.1:\(try TCPPort.free())"
      let program = try LookedAtProgram(["--rtsp", rtsp, "--size", "640x480", "--source", "test"])
      #expect(try program.pictures() == ["viewers": 0, "coded": 0, "passed": 0, "skipped": 0])
      let answer = try program.curl([], "/snapshot.jpg")
      #expect(answer.status == 200, "\(answer.headers)")
      let fields = HTTPFields(answer.headers)
      #expect(fields["content-type"] == "image/jpeg" && fields["cache-control"] == "no-store")
      KnownBars.expect(
        in: try program.pixels(write(answer.body, in: program), width: 640, height: 480), width: 640, height: 480)
      #expect(try eventually { try program.pictures()["coded"] == 1 })
      // And behind its name; HEAD makes none.
      #expect(try program.curl([], "/cameras/camera/snapshot.jpg").body.prefix(3) == Data([0xff, 0xd8, 0xff]))
      for (path, type) in [("/snapshot.jpg", "image/jpeg"), ("/stream.mjpg", "multipart/x-mixed-replace")] {
        let head = try program.curl(["-I"], path)
        #expect(head.status == 200 && HTTPFields(head.headers)["content-type"]?.hasPrefix(type) == true, "\(head)")
        // What GET would send has no length that is known.
        #expect(HTTPFields(head.headers).all("content-length") == [], "\(head)")
      }
      var figures: [String: Int] = [:]
      // A viewer is one until the server has seen that all has left. One picture is made while others come.
      _ = try eventually {
        figures = try program.pictures()
        figures["skipped"] = nil
        return figures["viewers"] == 0 && figures["coded"] == 2
      }
      #expect(figures == ["viewers": 0, "coded": 2, "passed": 0])
      let text = try program.control("status", "--json", "--camera", "camera")
      let status = try #require(JSONSerialization.jsonObject(with: Data(text.utf8)) as? [String: Any])
      let frames = try #require(status["frames"] as? [String: Any])
      #expect(frames["encoded"] as? Int == 0, "the encoder rests: \(text)")
    }

    @Test func `a snapshot has the orientation that viewers see`() throws {
      let program = try LookedAtProgram(["--rtsp", "127.0.0.1:\(TCPPort.free())"])
      _ = try program.curl([], "/snapshot.jpg")
      // Nobody watches, so that no picture is encoded that it could wait for.
      _ = try program.control("rotate", "90")
      let data = try program.curl([], "/snapshot.jpg").body
      let rgb = try program.pixels(write(data, in: program), width: 240, height: 320)
      KnownBars.expect(in: rgb, width: 240, height: 320, isTurned: true)
    }

    @Test func `ffmpeg plays the stream, each picture a new one`() throws {
      let program = try LookedAtProgram()
      let clip = program.directory.path("clip.rgb")
      let result = try Subprocess.run(
        [
          "ffmpeg", "-nostdin", "-v", "info", "-err_detect", "explode", "-f", "mpjpeg", "-i",
          program.url("/stream.mjpg"),
          "-frames:v", "20", "-pix_fmt", "rgb24", "-f", "rawvideo", "-fps_mode", "passthrough", clip,
        ], in: program.directory)
      #expect(result.status == 0, "\(result.error)")
      let bytes = [UInt8](try Data(contentsOf: URL(fileURLWithPath: clip)))
      let size = 320 * 240 * 3
      try #require(bytes.count == 20 * size)
      let pictures = (0..<20).map { Array(bytes[$0 * size..<($0 + 1) * size]) }
      for picture in pictures { KnownBars.expect(in: picture, width: 320, height: 240) }
      // A number and a clock are in each.
      #expect(Set(pictures).count == 20)
      #expect(try eventually { try program.pictures()["viewers"] == 0 })
      // Nobody looks, so nothing is made, once the last picture is.
      var made = try program.pictures()["coded"]
      _ = try eventually {
        let before = made
        made = try program.pictures()["coded"]
        return made == before
      }
      Thread.sleep(forTimeInterval: 1)
      #expect(try program.pictures()["coded"] == made)
    }

    @Test func `GStreamer and a client of HTTP 1.0 play the stream, and fps limits it`() throws {
      let program = try LookedAtProgram()
      let played = try Subprocess.run(
        [
          "sh", "-c",
          "exec timeout 60 gst-launch-1.0 souphttpsrc location=\(program.url("/stream.mjpg?fps=10")) "
            + "! multipartdemux ! image/jpeg ! jpegdec ! \(countingSink(8))",
        ], in: program.directory)
      #expect(played.hasPlayed, "\(played.outputText)\(played.error)")
      // Within five seconds there can be no more than so many; how many fewer is the machine's affair.
      let old = try program.curl(["--http1.0"], "/stream.mjpg?fps=2", limit: 5)
      #expect(old.exit == 28 && HTTPFields(old.headers).all("transfer-encoding") == [], "\(old.headers)")
      let parts = String(decoding: old.body, as: UTF8.self).components(separatedBy: "\r\n--nightjar\r\n").count - 1
      #expect((1...12).contains(parts), "\(parts)")
      #expect(old.body.starts(with: Data("--nightjar\r\nContent-Type: image/jpeg\r\nContent-Length: ".utf8)))
      for (value, status) in [("0", 400), ("fast", 400), ("1e9", 400), ("nan", 400)] {
        #expect(try program.curl([], "/stream.mjpg?fps=\(value)").status == status)
      }
    }

    @Test func `several viewers share pictures, are counted, and have a limit`() throws {
      let program = try LookedAtProgram()
      var viewers: [Subprocess] = []
      for _ in 0..<16 {
        viewers.append(
          try Subprocess(
            ["curl", "-sS", "--max-time", "120", "-o", "/dev/null", program.url("/stream.mjpg")], in: program.directory)
        )
      }
      defer { for viewer in viewers { viewer.send(SIGKILL) } }
      #expect(try eventually { try program.pictures()["viewers"] == 16 })
      let refused = try program.curl([], "/snapshot.jpg")
      // An address may have more: 16 are the camera's limit.
      #expect(refused.status == 503, "\(refused)")
      #expect(try program.curl([], "/healthz").status == 200)
      let listed = try program.control("viewers")
      #expect(listed.components(separatedBy: "mjpeg 127.0.0.1:").count == 17, "\(listed)")
      let json = try program.control("viewers", "--json")
      let list = try #require(JSONSerialization.jsonObject(with: Data(json.utf8)) as? [String: Any])
      let kinds = try #require(list["viewers"] as? [[String: Any]]).compactMap { $0["kind"] as? String }
      #expect(Set(kinds) == ["mjpeg", "destination"] && kinds.count { $0 == "mjpeg" } == 16, "\(kinds)")
      // 16 viewers at up to 30 a second each: shared, there are no more than the camera's own.
      let start = Date()
      let before = try program.pictures()["coded"] ?? 0
      Thread.sleep(forTimeInterval: 2)
      let rate = Double((try program.pictures()["coded"] ?? 0) - before) / Date().timeIntervalSince(start)
      #expect(rate > 0.5 && rate < 40, "\(rate)")
      for viewer in viewers { viewer.send(SIGKILL) }
      let haveGone = try eventually { try program.pictures()["viewers"] == 0 }
      let rest = try program.control("viewers")
      #expect(haveGone, "\(viewers.map(\.isRunning)) \(rest)")
    }

    @Test func `a viewer that does not read is ended, and holds nobody up`() throws {
      let program = try LookedAtProgram(["--size", "1280x720", "--source", "test"])
      let lazy = try Subprocess(
        [
          "python3", "-c",
          """
          import socket, sys, time
          s = socket.create_connection(("127.0.0.1", \(program.port)))
          s.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
          s.sendall(b"GET /stream.mjpg HTTP/1.1\\r\\nHost: localhost\\r\\n\\r\\n")
          print(len(s.recv(100)), flush=True)
          time.sleep(120)
          """,
        ], in: program.directory)
      defer { lazy.send(SIGKILL) }
      #expect(try eventually { try program.pictures()["viewers"] == 1 })
      #expect(try program.curl([], "/snapshot.jpg").status == 200)
      // Ten seconds, and as much again for the machine.
      #expect(try eventually(within: 60) { try program.pictures()["viewers"] == 0 })
      // What lay ready for it had an end: no more than the first pictures were made for it.
      #expect(try program.pictures()["coded"] ?? 0 < 100)
    }

    @Test func `a picture is there while the camera is not`() throws {
      let program = try LookedAtProgram([
        "--source", "/dev/video-none", "--size", "640x480", "--wait", "--name", "attic",
      ])
      let answer = try program.curl([], "/cameras/attic/snapshot.jpg")
      #expect(answer.status == 200)
      let rgb = try program.pixels(write(answer.body, in: program), width: 640, height: 480)
      // The placeholder is no flat picture: it says what is wrong.
      #expect(Set(rgb).count > 2)
    }

    @Test func `plain HTTP refuses the control API, with any method and any path`() throws {
      let program = try LookedAtProgram()
      let paths = [
        "/v1/status", "/v1/reload", "/v1/cameras/camera/bitrate", "/v1/cameras/camera/viewers/x", "/page",
        "/cameras//snapshot.jpg", "/../v1/status",
      ]
      for path in paths {
        let answer = try program.curl(["--path-as-is"], path)
        #expect(answer.status == 404, "\(path) \(answer.status)")
      }
      for method in ["POST", "PUT", "DELETE", "OPTIONS"] {
        #expect(try program.curl(["-X", method], "/snapshot.jpg").status == 405)
      }
      #expect(try program.curl([], "/cameras/attic/snapshot.jpg").status == 404)
      // A name of somebody else's that leads here.
      for host in [
        "evil.example", "evil.example:\(program.port)", "localhost.evil.example", "[::1", "127.0.0.1%x.evil.example",
        "",
      ] {
        #expect(try program.curl(["-H", "Host: \(host)"], "/snapshot.jpg").status == 403, "\(host)")
      }
      // curl leaves the field out then, which no browser does.
      #expect(try program.curl(["-H", "Host:"], "/snapshot.jpg").status == 200)
      // Another address of this machine is asked for from here by a proxy alone.
      #expect(try program.curl(["-H", "Host: 192.0.2.7:8080"], "/snapshot.jpg").status == 403)
      for host in ["localhost", "box.localhost:80", "[::1]:8080", "127.0.0.1", "localhost.:80"] {
        #expect(try program.curl(["-H", "Host: \(host)"], "/snapshot.jpg").status == 200, "\(host)")
      }
    }

    @Test func `HTTP 1.0 needs no host, gets lengths and has the connection closed`() throws {
      let program = try LookedAtProgram()
      for (path, keeps) in [("/snapshot.jpg", false), ("/metrics", false), ("/healthz", true)] {
        let asked = try Subprocess.run(
          [
            "python3", "-c",
            """
            import socket
            s = socket.create_connection(("127.0.0.1", \(program.port)))
            s.sendall(b"GET \(path) HTTP/1.0\\r\\n\(keeps ? "Connection: keep-alive\\r\\n" : "")\\r\\n")
            answer = b""
            while True:
              head, _, body = answer.partition(b"\\r\\n\\r\\n")
              # A connection that is kept has no end.
              if \(keeps ? "True" : "False") and b"content-length: %d\\r\\n" % len(body) in head.lower() + b"\\r\\n": break
              part = s.recv(65536)
              if not part: break
              answer += part
            print(head.decode().lower(), "| body", len(body))
            """,
          ], in: program.directory, limit: 120)
        let text = asked.outputText
        let parts = text.components(separatedBy: " | body ")
        let fields = HTTPFields(parts[0])
        let length = try #require(parts.last).trimmingCharacters(in: .whitespacesAndNewlines)
        #expect(fields.version == "http/1.1" && fields.status == 200, "\(text) \(asked.error)")
        #expect(fields["content-length"] == length, "\(text) \(asked.error)")
        #expect(fields.all("connection").contains { $0.contains("close") } == !keeps, "\(text)")
        if !keeps { #expect(fields["connection"] == "close", "\(text)") }
        #expect(fields.all("transfer-encoding") == [])
      }
    }

    @Test func `HTTP 1.0 gets all of a large picture, over packets as small as Ethernet's`() throws {
      // Noise, which makes the largest JPEGs there are.
      let directory = try TemporaryDirectory()
      var clip = Data("YUV4MPEG2 W1920 H1080 F5:1 C420\nFRAME\n".utf8)
      var generator = SystemRandomNumberGenerator()
      for _ in 0..<1920 * 1080 * 3 / 16 { withUnsafeBytes(of: generator.next()) { clip.append(contentsOf: $0) } }
      try clip.write(to: directory.url.appendingPathComponent("noise.y4m"))
      let program = try LookedAtProgram(["--source", "file:\(directory.path("noise.y4m"))"])
      // On loopback a packet has 64 kB, and a socket takes more than any picture.
      let asked = try Subprocess.run(
        [
          "python3", "-c",
          """
          import re, socket
          for attempt in range(4):
              s = socket.socket()
              s.setsockopt(socket.IPPROTO_TCP, socket.TCP_MAXSEG, 1448)
              s.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 65536)
              s.connect(("127.0.0.1", \(program.port)))
              s.sendall(b"GET /snapshot.jpg HTTP/1.0\\r\\n\\r\\n")
              answer = b""
              try:
                  while part := s.recv(65536): answer += part
              except ConnectionError: pass
              head, _, body = answer.partition(b"\\r\\n\\r\\n")
              length = int(re.search(rb"content-length: ([0-9]+)", head.lower())[1])
              print("all" if len(body) == length > 1000000 else f"{len(body)} of {length}")
          """,
        ], in: program.directory, limit: 120)
      #expect(asked.outputText == "all\nall\nall\nall\n", "\(asked.outputText)\(asked.error)")
    }

    @Test func `a slow viewer sees the present picture, not old ones from its socket`() throws {
      let program = try LookedAtProgram(["--size", "1280x720", "--source", "test"])
      // Reads 300 kB a second for a while; how much of what was sent it has not seen is what it is behind.
      let slow = try Subprocess(
        [
          "python3", "-c",
          """
          import socket, time
          s = socket.socket()
          s.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 65536)
          s.connect(("127.0.0.1", \(program.port)))
          s.sendall(b"GET /stream.mjpg HTTP/1.1\\r\\nHost: localhost\\r\\n\\r\\n")
          count, start = 0, time.monotonic()
          while time.monotonic() < start + 8 or count < 600000:
              count += len(s.recv(30000))
              time.sleep(0.1)
          print(count, flush=True)
          time.sleep(60)
          """,
        ], in: program.directory)
      defer { slow.send(SIGKILL) }
      try #require(eventually { slow.outputSoFar.hasSuffix("\n") || !slow.isRunning })
      let seen = try #require(Int(slow.outputSoFar.trimmingCharacters(in: .newlines)))
      let json = try program.control("viewers", "--json")
      let list = try #require(try JSONSerialization.jsonObject(with: Data(json.utf8)) as? [String: Any])
      let viewers = try #require(list["viewers"] as? [[String: Any]])
      let sent = try #require(
        viewers.first { $0["kind"] as? String == "mjpeg" }.flatMap { ($0["delivery"] as? [String: Any] ?? $0)["bytes"] }
          as? Int)
      // Without a limit the socket holds 2.5 MB or more.
      #expect(sent - seen < 1_000_000, "sent \(sent), seen \(seen)")
      #expect(seen > 500_000)
    }

    @Test func `the session description is that of a destination`() throws {
      let port = try TCPPort.free()
      let program = try LookedAtProgram([
        "--to", "rtp://127.0.0.1:\(port)?payload=mp2t", "--to", "srtp://127.0.0.1:\(port + 2)", "--sdp", "stream.sdp",
      ])
      let first = try program.curl([], "/camera.sdp")
      #expect(first.status == 200 && HTTPFields(first.headers)["content-type"] == "application/sdp")
      let text = String(decoding: first.body, as: UTF8.self)
      #expect(DescriptionLines(text)["m"] == ["video \(port + 2) RTP/SAVP 96"], "\(text)")
      #expect(DescriptionLines(text).attributes("crypto").count == 1, "\(text)")
      #expect(try Live555Description(text).media.first?.protocolName == "SRTP")
      #expect(try Media3Description(text).media.first?.encoding == "H264")
      let other = String(decoding: try program.curl([], "/camera.sdp?destination=1").body, as: UTF8.self)
      #expect(DescriptionLines(other)["m"] == ["video \(port) RTP/AVP 33"], "\(other)")
      #expect(try Live555Description(other).media.first?.codec == "MP2T")
      #expect(try Media3Description(other).media.first?.encoding == "MP2T")
      #expect(try program.curl([], "/camera.sdp?destination=3").status == 404)
      #expect(try program.curl([], "/camera.sdp?destination=x").status == 400)
    }

    @Test func `without a destination it names the RTSP server`() throws {
      let port = try TCPPort.free()
      let program = try LookedAtProgram(["--rtsp", "127.0.0.1:\(port)"])
      let answer = try program.curl([], "/camera.sdp")
      #expect(answer.status == 404)
      let body = String(decoding: answer.body, as: UTF8.self).replacing("\\/", with: "/")
      #expect(body.contains("rtsp://HOST:\(port)/camera"), "\(body)")
    }

    /// An address of this machine that is not its own name for itself; nil where it has none.
    static let address: String? = {
      var list: UnsafeMutablePointer<ifaddrs>?
      guard getifaddrs(&list) == 0 else { return nil }
      defer { freeifaddrs(list) }
      var entry = list
      while let current = entry {
        entry = current.pointee.ifa_next
        guard let address = current.pointee.ifa_addr, address.pointee.sa_family == sa_family_t(AF_INET) else {
          continue
        }
        var text = [CChar](repeating: 0, count: 64)
        getnameinfo(address, socklen_t(MemoryLayout<sockaddr_in>.size), &text, 64, nil, 0, NI_NUMERICHOST)
        let name = String(decoding: text.prefix { $0 != 0 }.map { UInt8(truncatingIfNeeded: $0) }, as: UTF8.self)
        if !name.hasPrefix("127.") { return name }
      }
      return nil
    }()

    @Test(.enabled(if: address != nil))
    func `others log in by Digest, and get no keys`() throws {
      let address = try #require(Self.address)
      let port = try TCPPort.free()
      let program = try LookedAtProgram(
        ["--to", "srtp://127.0.0.1:\(port)", "--to", "rtp://127.0.0.1:\(port + 2)", "--sdp", "stream.sdp"],
        address: address, users: ["alice": "correct horse"])
      let asked = try program.curl([], "/snapshot.jpg")
      #expect(asked.status == 401)
      let challenges = HTTPFields(asked.headers).all("www-authenticate")
      #expect(!challenges.isEmpty && challenges.allSatisfy { $0.hasPrefix("digest ") }, "\(asked.headers)")
      #expect(!challenges.contains { $0.contains("basic") }, "\(asked.headers)")
      #expect(try program.curl(["-u", "alice:correct horse"], "/snapshot.jpg").status == 401)
      let login = ["--digest", "-u", "alice:correct horse"]
      let answer = try program.curl(login, "/snapshot.jpg")
      #expect(answer.status == 200 && answer.body.prefix(2) == Data([0xff, 0xd8]))
      let start = Date()
      #expect(try program.curl(["--digest", "-u", "alice:wrong"], "/snapshot.jpg").status == 401)
      #expect(Date().timeIntervalSince(start) > 0.9)
      #expect(try program.curl(login, "/camera.sdp").status == 403)
      #expect(try program.curl(login, "/camera.sdp?destination=2").status == 200)
      #expect(try program.curl(login, "/v1/status").status == 404)
      // ffmpeg logs in too.
      let played = try Subprocess.run(
        [
          "ffmpeg", "-nostdin", "-v", "info", "-f", "mpjpeg", "-i",
          "http://alice:correct%20horse@\(address):\(program.port)/stream.mjpg", "-frames:v", "5", "-f", "null", "-",
        ], in: program.directory)
      #expect(played.status == 0 && played.error.contains("320x240"), "\(played.error)")
      program.process.send(SIGTERM)
      let told = try program.process.wait().error.split(separator: "\n")
      #expect(told.contains { $0.contains("http: ") && $0.contains("from \(address) failed") }, "\(told)")
    }

    @Test(.enabled(if: address != nil))
    func `without users nobody else is let in, and it says so`() throws {
      let address = try #require(Self.address)
      let directory = try TemporaryDirectory()
      let result = try Subprocess.run(
        [nightjarPath, "stream", "--source", "test", "--control", "none", "--http", address],
        in: directory, environment: ["HOME": directory.path("home"), "XDG_CONFIG_HOME": directory.path("none")])
      let mend = "without users only this host may watch: add one with nightjar user add NAME"
      #expect(result.status == 64 && result.log.failures == ["--http \(address): \(mend)"], "\(result.error)")
    }

    @Test func `a stream outlives another pipeline, and the server follows its line in the file`() throws {
      let (port, other) = (try TCPPort.free(), try TCPPort.free())
      func text(_ size: String, _ http: String) -> String {
        "source = 'test'\nsize = '\(size)'\nrtsp = '127.0.0.1:\(other)'\n\(http)"
      }
      let program = try ConfiguredProgram(text("320x240", "http = \(port)\nwebrtc-port = 0\n"), until: "http  ")
      let file = program.directory.path("stream")
      let viewer = try Subprocess(
        ["curl", "-sS", "--max-time", "120", "-o", file, "http://127.0.0.1:\(port)/stream.mjpg"], in: program.directory)
      func parts() -> Int {
        let data = (try? Data(contentsOf: URL(fileURLWithPath: file))) ?? Data()
        return String(decoding: data, as: UTF8.self).components(separatedBy: "Content-Type: image/jpeg").count - 1
      }
      #expect(eventually { parts() > 3 })
      try program.write(text("640x480", "http = \(port)\nwebrtc-port = 0\n"))
      #expect(try program.reload() == ["camera": "restarted"])
      let before = parts()
      #expect(eventually { parts() > before + 5 })
      #expect(viewer.isRunning)
      // Another port, and none.
      let next = try TCPPort.free()
      try program.write(text("640x480", "http = '127.0.0.1:\(next)'\nwebrtc-port = 0\n"))
      #expect(try program.answer("reload")["server"] as? [String] == ["HTTP restarted"])
      let moved = try Subprocess.run(
        ["curl", "-sSf", "-o", file + ".jpg", "http://127.0.0.1:\(next)/snapshot.jpg"], in: program.directory)
      #expect(moved.status == 0, "\(moved.error)")
      #expect(eventually { !viewer.isRunning })
      try program.write(text("640x480", ""))
      #expect(try program.answer("reload")["server"] as? [String] == ["WebRTC ended", "HTTP ended"])
      let gone = try Subprocess.run(["curl", "-sS", "http://127.0.0.1:\(next)/snapshot.jpg"], in: program.directory)
      #expect(gone.status == 7)
      try program.end()
    }

    @Test(.enabled(if: address != nil))
    func `a removed user's stream ends`() throws {
      let address = try #require(Self.address)
      let program = try LookedAtProgram(address: address, users: ["alice": "correct horse", "bert": "battery staple"])
      func watch(_ user: String) throws -> Subprocess {
        try Subprocess(
          ["curl", "-sS", "--max-time", "120", "--digest", "-u", user, "-o", "/dev/null", program.url("/stream.mjpg")],
          in: program.directory)
      }
      let (alice, bert) = (try watch("alice:correct horse"), try watch("bert:battery staple"))
      #expect(try eventually { try program.pictures()["viewers"] == 2 })
      let removed = try Subprocess.run(
        [nightjarPath, "user", "remove", "alice", "--users", program.directory.path("users")], in: program.directory)
      #expect(removed.status == 0, "\(removed.error)")
      let text = try program.control("reload", "--json")
      let answer = try #require(JSONSerialization.jsonObject(with: Data(text.utf8)) as? [String: Any])
      #expect(answer["server"] as? [String] == ["users of HTTP changed"], "\(text)")
      #expect(try eventually { try program.pictures()["viewers"] == 1 && !alice.isRunning })
      #expect(bert.isRunning)
      bert.send(SIGKILL)
    }
  }
#endif
