#if X264
  import CLinux
  import Foundation
  import TestSupport
  import Testing

  /// `--http` to other hosts: the log-in, and what a user gets.
  @Suite(.serialized) struct PictureAccessTests {
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
        ["--to", "srtp://127.0.0.1:\(port)", "--to", "rtp://127.0.0.1:\(port + 2)"],
        address: address, users: ["alice": "correct horse"], isDescribed: true)
      let asked = try program.curl([], "/snapshot.jpg")
      #expect(asked.status == 401)
      let challenges = HTTPFields(asked.headers).all("www-authenticate")
      #expect(!challenges.isEmpty && challenges.allSatisfy { $0.hasPrefix("digest ") }, "\(asked.headers)")
      #expect(!challenges.contains { $0.contains("basic") }, "\(asked.headers)")
      #expect(try program.curl(["-u", "alice:correct horse"], "/snapshot.jpg").status == 401)
      let login = ["--digest", "-u", "alice:correct horse"]
      let answer = try program.curl(login, "/snapshot.jpg")
      #expect(answer.status == 200 && answer.body.prefix(2) == Data([0xff, 0xd8]))
      // The first wrong login is answered at once, and the next one a second later.
      let start = Date()
      for _ in 0..<2 {
        #expect(try program.curl(["--digest", "-u", "alice:wrong"], "/snapshot.jpg").status == 401)
      }
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
      let told = try program.process.wait().log.lines
      let end = " from \(address) failed: wrong name, password or token"
      #expect(told.contains { $0.hasPrefix("http: ") && $0.hasSuffix(end) }, "\(told)")
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
