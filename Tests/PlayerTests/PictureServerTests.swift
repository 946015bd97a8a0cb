#if X264
  import Foundation
  import TestSupport
  import Testing

  /// `--http` as a server: methods, paths, hosts, HTTP 1.0, session descriptions and reloads.
  @Suite(.serialized) struct PictureServerTests {
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

    @Test func `the session description is that of a destination`() throws {
      let port = try TCPPort.free()
      let program = try LookedAtProgram(
        ["--to", "rtp://127.0.0.1:\(port)?payload=mp2t", "--to", "srtp://127.0.0.1:\(port + 2)"], isDescribed: true)
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
  }
#endif
