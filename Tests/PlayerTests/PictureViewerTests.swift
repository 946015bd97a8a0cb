#if X264
  import Foundation
  import TestSupport
  import Testing

  /// Viewers of JPEG pictures as the log, `nightjar ctl` and `/healthz` tell of them, and what a picture says of itself.
  @Suite(.serialized) struct PictureViewerTests {
    private func viewers(_ program: LookedAtProgram) throws -> [[String: Any]] {
      let text = try program.control("viewers", "--json")
      let answer = try JSONSerialization.jsonObject(with: Data(text.utf8)) as? [String: Any]
      return try #require(answer?["viewers"] as? [[String: Any]])
    }

    /// The first two views of `nightjar ctl status --watch`, of six lines each.
    private func views(_ program: LookedAtProgram) throws -> String {
      try Subprocess.run(
        ["sh", "-c", "\"$0\" ctl status --watch --socket \"$1\" | head -n 12", nightjarPath]
          + [program.directory.path("control")], in: program.directory, limit: 60
      ).outputText
    }

    @Test func `a viewer of JPEG pictures is told when it comes and goes, and counted meanwhile`() throws {
      let program = try LookedAtProgram(["--rtsp", "127.0.0.1:\(TCPPort.free())"])
      let process = program.process
      let viewer = try Subprocess(
        ["curl", "-sS", "--max-time", "120", "-o", "/dev/null", program.url("/stream.mjpg")], in: program.directory)
      defer { viewer.send(SIGKILL) }
      #expect(eventually { process.errorSoFar.contains(/viewer mjpeg http 127\.0\.0\.1:[0-9]+ is watching\n/) })
      // The encoder is seen to rest where a picture came between two views: on a busy machine, not each time.
      var view = ""
      let rests = try eventually {
        view = try views(program)
        return view.contains(/camera +streaming +320x240 +encoder rests +dropped/)
      }
      #expect(rests, "\(view)")
      let lines = ProgramLog(view).lines
      #expect(lines.contains { $0.hasSuffix("  1 camera  1 viewer") }, "\(view)")
      #expect(lines.contains { $0.hasPrefix("  1 viewer by MJPEG ") && $0.hasSuffix(" JPEG/s") }, "\(view)")
      viewer.send(SIGKILL)
      #expect(
        eventually { process.errorSoFar.contains(/viewer mjpeg http [0-9.:]+ left after [0-9]+ s: [0-9]+ pictures\n/) })
      // By the control socket too.
      let local = try Subprocess(
        [
          "curl", "-sS", "--max-time", "120", "-o", "/dev/null", "--unix-socket", program.directory.path("control"),
          "http://localhost/cameras/camera/stream.mjpg",
        ], in: program.directory)
      #expect(eventually { process.log.count(of: "viewer mjpeg unix this host is watching") == 1 })
      let own = try #require(try viewers(program).first)
      #expect(own["transport"] as? String == "unix" && own["address"] == nil && own["user"] == nil, "\(own)")
      local.send(SIGKILL)
      let left = "viewer mjpeg unix this host left after "
      #expect(eventually { process.log.lines.count { $0.hasPrefix(left) && $0.hasSuffix(" pictures") } == 1 })
      #expect(process.errorSoFar.components(separatedBy: " is watching").count == 3, "\(process.errorSoFar)")
    }

    @Test func `who takes single pictures is a viewer everywhere, told once and counted by pictures`() throws {
      let program = try LookedAtProgram(["--rtsp", "127.0.0.1:\(TCPPort.free())"])
      func health() throws -> String? {
        try Health(program.directory.path("control"), path: "/cameras/camera/healthz", in: program.directory)?.summary
      }
      #expect(try eventually { try health() == "200 idle" })
      let sizes = try (0..<3).map { _ in try program.curl([], "/snapshot.jpg").body.count }
      var list: [[String: Any]] = []
      // A picture is counted once it has left.
      _ = try eventually {
        list = try viewers(program).filter { $0["kind"] as? String != "destination" }
        return list.first?["packets"] as? Int == 3
      }
      let viewer = try #require(list.first)
      #expect(list.count == 1 && viewer["kind"] as? String == "snapshot", "\(list)")
      #expect(viewer["transport"] as? String == "http" && viewer["address"] as? String == "127.0.0.1", "\(viewer)")
      #expect(viewer["packets"] as? Int == 3 && viewer["bytes"] as? Int == sizes.reduce(0, +), "\(viewer) \(sizes)")
      let isTold = eventually {
        program.process.log.lines.filter { $0.hasPrefix("viewer snapshot ") } == [
          "viewer snapshot http 127.0.0.1 takes pictures"
        ]
      }
      #expect(isTold, "\(program.process.errorSoFar)")
      #expect(try health() == "200 streaming")
      let figures = try program.pictures()
      #expect(figures["viewers"] == 1 && figures["snapshot_viewers"] == 1, "\(figures)")
      let page = String(decoding: try program.curl([], "/metrics").body, as: UTF8.self)
      for (kind, count) in [("snapshot", 1), ("mjpeg", 0)] {
        #expect(page.contains(#"nightjar_viewers{camera="camera",kind="\#(kind)"} \#(count)"#), "\(page)")
      }
      let view = try views(program)
      let lines = ProgramLog(view).lines
      #expect(lines.contains { $0.hasSuffix("  1 camera  1 viewer") }, "\(view)")
      #expect(lines.contains { $0.hasPrefix("  1 viewer by snapshot ") && $0.hasSuffix(" JPEG/s") }, "\(view)")
    }

    @Test(.enabled(if: PictureAccessTests.address != nil))
    func `a viewer is address, port, transport, user and encryption, each by itself`() throws {
      let address = try #require(PictureAccessTests.address)
      let (plain, secure) = (try TCPPort.free(), try TCPPort.free())
      let target = try UDPPort.free()
      let program = try LookedAtProgram(
        ["--rtsp", "\(address):\(plain)", "--https", "\(address):\(secure)", "--to", "rtp://127.0.0.1:\(target)"],
        address: address, users: ["alice": "correct horse"])
      let login = ["-u", "alice:correct horse", "--max-time", "120", "-o", "/dev/null"]
      let commands =
        [
          ["curl", "-sS", "--digest"] + login + [program.url("/stream.mjpg")],
          ["curl", "-sS", "-k"] + login + ["https://\(address):\(secure)/stream.mjpg"],
        ]
        + ["udp", "tcp"].map { transport in
          ["ffmpeg", "-nostdin", "-v", "error"] + FFmpegTransport.options(transport)
            + ["-i", "rtsp://alice:correct%20horse@\(address):\(plain)/camera", "-f", "null", "-"]
        }
      let players = try commands.map { try Subprocess($0, in: program.directory) }
      defer { for player in players { player.send(SIGKILL) } }
      var list: [[String: Any]] = []
      let areThere = try eventually(within: 60) {
        list = try viewers(program)
        return list.count == 5
      }
      #expect(areThere, "\(program.process.errorSoFar)")
      func one(_ transport: String, _ kind: String) throws -> [String: Any] {
        let found = list.filter { $0["transport"] as? String == transport && $0["kind"] as? String == kind }
        #expect(found.count == 1, "\(transport) \(kind): \(list)")
        return try #require(found.first)
      }
      let destination = try one("udp", "destination")
      #expect(destination["address"] as? String == "127.0.0.1" && destination["port"] as? Int == Int(target))
      #expect(destination["user"] == nil && destination["encrypted"] as? Bool == false)
      #expect(destination["url"] as? String == "rtp://127.0.0.1:\(target)")
      for (transport, kind) in [("udp", "rtsp"), ("tcp", "rtsp"), ("http", "mjpeg"), ("https", "mjpeg")] {
        let viewer = try one(transport, kind)
        #expect(viewer["address"] as? String == address && viewer["user"] as? String == "alice", "\(viewer)")
        #expect(viewer["encrypted"] as? Bool == (transport == "https"), "\(viewer)")
        // The kernel knows that port on the other side.
        let port = try #require(viewer["port"] as? Int)
        let sockets = try Subprocess.run(["ss", "-Htuna", "sport = :\(port)"], in: program.directory)
        #expect(sockets.outputText.contains(":\(port)"), "\(viewer) \(sockets.outputText)")
        // What clients of before these fields read.
        #expect((viewer["url"] as? String)?.hasSuffix("\(address):\(port), alice") == true, "\(viewer)")
      }
      #expect(
        eventually { program.process.errorSoFar.contains(/viewer mjpeg https [0-9.:]+, alice is watching\n/) },
        "\(program.process.errorSoFar)")
    }

    @Test func `a picture says whether it is the camera's, and live=1 takes no other`() throws {
      let present = try LookedAtProgram()
      for path in ["/snapshot.jpg", "/snapshot.jpg?live=1", "/snapshot.jpg?live=0"] {
        let answer = try present.curl([], path)
        #expect(answer.status == 200 && HTTPFields(answer.headers)["nightjar-picture"] == "live", "\(path) \(answer)")
      }
      #expect(try present.curl([], "/snapshot.jpg?live=maybe").status == 400)
      let absent = try LookedAtProgram(["--source", "/dev/video-none", "--size", "320x240", "--wait"])
      let shown = try absent.curl([], "/snapshot.jpg")
      #expect(shown.status == 200 && HTTPFields(shown.headers)["nightjar-picture"] == "placeholder")
      let refused = try absent.curl([], "/snapshot.jpg?live=1")
      #expect(refused.status == 503 && HTTPFields(refused.headers)["nightjar-picture"] == "placeholder")
      let reason = try #require(try JSONSerialization.jsonObject(with: refused.body) as? [String: String])
      #expect(reason["failure"] == "unavailable" && reason["error"]?.contains("placeholder") == true, "\(reason)")
      // HEAD answers as GET does.
      for program in [present, absent] {
        for path in ["/snapshot.jpg", "/snapshot.jpg?live=1", "/snapshot.jpg?live=x", "/stream.mjpg?fps=x"] {
          let (get, head) = (try program.curl([], path), try program.curl(["-I"], path))
          let marks = [get, head].map { HTTPFields($0.headers)["nightjar-picture"] }
          #expect(head.status == get.status && marks[0] == marks[1], "\(path) \(get) \(head)")
        }
      }
    }

    @Test(arguments: [["--source", "auto"], ["--source", "/dev/video-none", "--wait"], ["--source", "test"]])
    func `the status says of a camera what healthz says`(source: [String]) throws {
      let program = try LookedAtProgram(source + ["--size", "320x240", "--rtsp", "127.0.0.1:\(TCPPort.free())"])
      let socket = program.directory.path("control")
      func health() throws -> [String: Any] {
        let answer = try #require(try Health(socket, in: program.directory))
        return try #require((answer.document["cameras"] as? [[String: Any]])?.first)
      }
      // Both are asked until nothing changes between.
      var (said, status): ([String: Any], [String: Any]) = ([:], [:])
      let isSteady = try eventually {
        let before = try health()
        let text = try program.control("status", "--json")
        status = try #require(try JSONSerialization.jsonObject(with: Data(text.utf8)) as? [String: Any])
        said = try health()
        return said["state"] as? String != "starting" && before as NSDictionary == said as NSDictionary
      }
      #expect(isSteady, "\(said)")
      let camera = try #require((status["cameras"] as? [[String: Any]])?.first)
      #expect(try #require(camera["health"] as? NSDictionary) == said as NSDictionary)
      let absent = try #require(status["absent"] as? [[String: String]])
      let isAbsent = said["state"] as? String == "absent"
      #expect(absent.map { $0["reason"] } == (isAbsent ? [said["reason"] as? String] : []), "\(absent)")
      let watched = try Subprocess.run(
        ["sh", "-c", "\"$0\" ctl status --watch --socket \"$1\" | head -n 4", nightjarPath, socket],
        in: program.directory, limit: 60)
      let state = try #require(said["state"] as? String)
      #expect(watched.outputText.contains(try Regex("\ncamera +\(state) ")), "\(state): \(watched.outputText)")
      if isAbsent {
        let picture = try program.curl([], "/snapshot.jpg?live=1")
        #expect(picture.status == 503 && HTTPFields(picture.headers)["nightjar-picture"] == "substitute")
      }
    }

    @Test func `the URLs printed at the start work with two cameras, and contain an address`() throws {
      let ports = try (0..<3).map { _ in try TCPPort.free() }
      let directory = try TemporaryDirectory()
      let added = try Subprocess.run(
        [
          "sh", "-c", "echo correct horse | \"$0\" user add alice --users \"$1\"", nightjarPath,
          directory.path("users"),
        ],
        in: directory)
      #expect(added.status == 0, "\(added.error)")
      let program = try ConfiguredProgram(
        """
        users = '\(directory.path("users"))'
        rtsp = ':\(ports[0])'
        https = ':\(ports[1])'
        webrtc-port = 0
        http = '0.0.0.0:\(ports[2])'
        [[camera]]
        name = "nursery"
        source = "test"
        [[camera]]
        name = "door"
        source = "test"
        audio = "test"
        """, environment: ["STATE_DIRECTORY": directory.path("state")], until: "\nrtsp  ")
      let process = program.process
      #expect(eventually { process.errorSoFar.components(separatedBy: "encoder    ").count == 3 })
      // A camera without sound has no URL to listen at.
      #expect(eventually { process.log.commands(for: "listen").count >= 2 }, "\(process.errorSoFar)")
      let listening = process.log.commands(for: "listen")
      #expect(
        listening.count == 2 && listening.allSatisfy { $0.hasSuffix("/cameras/door/listen.mp3") }, "\(listening)")
      let served = process.log.values(of: "rtsp")
      #expect(served.contains { $0.hasSuffix("/door") } && Set(served).count == served.count, "\(served)")
      let lines = process.errorSoFar.split(separator: "\n").map(String.init)
      // With the name that others may not know, the address that they do.
      let urls = lines.compactMap { $0.firstMatch(of: /^(?:rtsp|https?) +([a-z]+:\/\/.*)$/)?.output.1 }
      for name in ["nursery", "door"] {
        #expect(urls.contains { $0.hasPrefix("http://") && $0.hasSuffix("/cameras/\(name)/stream.mjpg") }, "\(urls)")
      }
      if let address = PictureAccessTests.address {
        for (scheme, port) in zip(["rtsp", "https", "http"], ports) {
          #expect(urls.contains { $0.hasPrefix("\(scheme)://\(address):\(port)/") }, "\(urls)")
        }
      }
      // Pasted, the pictures come. Of this machine's own name there need not be an address.
      for url in urls where url.hasPrefix("http://") && url.contains(/\/\/[0-9.]+:/) {
        let answer = try Subprocess.run(
          [
            "sh", "-c",
            "curl -sS --digest -u 'alice:correct horse' --max-time 100 -D /dev/stderr \"$0\" | head -c 100 >/dev/null",
            String(url),
          ], in: directory)
        #expect(answer.error.contains("200 OK"), "\(url): \(answer.error)")
      }
      let hint = try #require(lines.first { $0.hasPrefix("control    ") })
      for command in hint.dropFirst(11).components(separatedBy: "; ") {
        let result = try Subprocess.run(
          ["sh", "-c", command.replacing("nightjar ", with: "\"$0\" "), nightjarPath], in: directory)
        #expect(result.status == 0, "\(command): \(result.error)")
      }
      let command = try #require(process.log.commands(for: "curl").first { $0.hasSuffix("/snapshot.jpg") })
      let result = try Subprocess.run(
        [
          "sh", "-c",
          command.replacing("-u NAME", with: "-fsS -u 'alice:correct horse'")
            .replacing("-o snapshot.jpg", with: "-o \(directory.path("snapshot.jpg"))"),
        ], in: directory)
      #expect(result.status == 0, "\(command): \(result.error)")
    }
  }
#endif
