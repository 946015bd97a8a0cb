#if X264
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
      #expect(try program.pictures() == ["viewers": 0, "snapshot_viewers": 0, "coded": 0, "passed": 0, "skipped": 0])
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
      // Both pictures were for one client. One picture is made while others come.
      _ = try eventually {
        figures = try program.pictures()
        figures["skipped"] = nil
        return figures["viewers"] == 1 && figures["coded"] == 2
      }
      #expect(figures == ["viewers": 1, "snapshot_viewers": 1, "coded": 2, "passed": 0])
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
      KnownBars.expect(in: rgb, width: 240, height: 320, isRotated: true)
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
      // Nobody looks, so nothing is made, once the last picture is: its thread may wait for a processor.
      let rests = try eventually {
        let made = try program.pictures()["coded"]
        Thread.sleep(forTimeInterval: 1)
        return try program.pictures()["coded"] == made
      }
      #expect(rests)
      let made = try #require(try program.pictures()["coded"])
      Thread.sleep(forTimeInterval: 2)
      #expect(try program.pictures()["coded"] ?? .max <= made + 1)
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
      let (start, before) = (Date(), try program.pictures()["coded"] ?? 0)
      Thread.sleep(forTimeInterval: 2)
      var coded = 0
      let areCoded = try eventually {
        coded = try program.pictures()["coded"] ?? 0
        return coded >= before + 10
      }
      let rate = Double(coded - before) / Date().timeIntervalSince(start)
      #expect(areCoded && rate > 0.5 && rate < 40, "\(coded) \(before) \(rate)")
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
      let hasEnded = try eventually(within: 60) {
        let figures = try program.pictures()
        return figures["viewers"] == figures["snapshot_viewers"]
      }
      #expect(hasEnded)
      // What lay ready for it had an end: no more than the first pictures were made for it.
      #expect(try program.pictures()["coded"] ?? 0 < 100)
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
  }
#endif
