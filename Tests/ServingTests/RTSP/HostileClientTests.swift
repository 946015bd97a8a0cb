#if X264
  import Serving
  import Foundation
  import Media
  import Platform
  import TestSupport
  import Testing

  /// Clients that mean no good, or know no better.
  @Suite(.serialized) struct HostileClientTests {
    @Test func `half a request and a silent connection end`() throws {
      let camera = try ServedCamera {
        $0.requestTime = Duration(seconds: 1)
        $0.idleTime = Duration(seconds: 4)
      }
      let half = try camera.client()
      half.send("OPTIONS * RTSP/1.0\r\nCSeq: 1\r\n".utf8)
      let packet = try camera.client()
      packet.send([0x24, 0, 0, 100, 1])
      let silent = try camera.client()
      let polite = try camera.client()
      #expect(try polite.request("OPTIONS").status == 200)
      #expect(half.waitForClose())
      #expect(packet.waitForClose())
      #expect(silent.waitForClose())
      #expect(polite.waitForClose())
      #expect(try eventually { try camera.server.statistics().connections == 0 })
    }

    @Test(arguments: [
      "GET / HTTP/1.1\r\n\r\n", "\u{16}\u{3}\u{1}\u{2}\u{0}", "OPTIONS * RTSP/1.0\r\nCSeq 1\r\n\r\n",
      String(repeating: "A", count: 100_000), "OPTIONS \(String(repeating: "u", count: 5000)) RTSP/1.0\r\n\r\n",
    ])
    func `garbage gets 400 and a closed connection`(text: String) throws {
      let camera = try ServedCamera()
      let client = try camera.client()
      client.send(text.utf8, within: 2)
      // The latter for a line that would be too long for any request.
      #expect([400, 414].contains(try client.reply().status))
      #expect(client.waitForClose())
      #expect(try camera.client().request("OPTIONS").status == 200)
    }

    @Test(arguments: ["12345678901234567890", "0", "-1", "", "x"])
    func `every CSeq gets an answer`(number: String) throws {
      let camera = try ServedCamera()
      let client = try camera.client()
      client.send("OPTIONS * RTSP/1.0\r\nCSeq: \(number)\r\n\r\n".utf8)
      let reply = try client.reply()
      #expect(reply.status == 200 || reply.status == 400)
      #expect(reply.status != 200 || reply.header("CSeq") == number)
      #expect(reply.status == 200 || number != "12345678901234567890")
    }

    @Test func `requests sent ahead are answered in their order`() throws {
      let camera = try ServedCamera()
      let client = try camera.client()
      let methods = (0..<60).map { ["OPTIONS", "DESCRIBE", "GET_PARAMETER"][$0 % 3] }
      client.send(methods.map { client.text($0) }.joined().utf8)
      for index in methods.indices {
        let reply = try client.reply()
        #expect(reply.header("CSeq") == "\(index + 1)")
        #expect(reply.status == 200)
      }
    }

    private static func users() throws -> UsersFile {
      var file = UsersFile()
      let name = try UserName("alice")
      let hashes = Dictionary(
        uniqueKeysWithValues: DigestAlgorithm.allCases.map { ($0, [UInt8](repeating: 0x61, count: $0.hexLength)) })
      _ = try file.set(try #require(UsersFile.User(name: name, hashes: hashes)))
      return file
    }

    private static func wrongLogin(_ client: RTSPClient, after reply: RTSPClient.Reply) throws -> String {
      let challenge = try #require(reply.headers["www-authenticate"]?.first)
      let nonce = try #require(challenge.components(separatedBy: "nonce=\"").last?.prefix { $0 != "\"" })
      let response = String(repeating: "0", count: 64)
      return "Authorization: Digest username=\"alice\", realm=\"nightjar\", nonce=\"\(nonce)\", uri=\"\(client.url)\", "
        + "algorithm=SHA-256, qop=auth, nc=00000001, cnonce=\"abc\", response=\"\(response)\""
    }

    @Test func `failed logins are counted and delayed, and later requests on the connection wait`() throws {
      let users = try Self.users()
      let camera = try ServedCamera { $0.users = users }
      let client = try camera.client()
      let first = try client.request("DESCRIBE")
      #expect(first.status == 401)
      #expect(first.headers["www-authenticate"]?.first?.contains("SHA-256") == true)
      #expect(first.headers["www-authenticate"]?.last?.contains("MD5") == true)
      let login = try Self.wrongLogin(client, after: first)
      let begin = Instant.now()
      client.send(
        (0..<3).map { _ in client.text("DESCRIBE", nil, [login]) + client.text("OPTIONS") }.joined().utf8)
      let replies = try (0..<6).map { _ in try client.reply() }
      #expect(replies.map(\.status) == [401, 200, 401, 200, 401, 200])
      #expect(replies.compactMap { $0.header("CSeq") } == ["2", "3", "4", "5", "6", "7"])
      // The first at once, then one second, and two.
      #expect((Instant.now() - begin).seconds >= 2.9)
      #expect(try camera.server.statistics().failedLogins == 3)
      // Nobody gets further without a login.
      for method in ["SETUP", "PLAY", "TEARDOWN", "GET_PARAMETER"] {
        #expect(try client.request(method).status == 401)
      }
    }

    @Test func `guesses on many connections are refused`() throws {
      let users = try Self.users()
      let camera = try ServedCamera { $0.users = users }
      let clients = try (0..<12).map { _ in try camera.client() }
      let challenges = try clients.map { try $0.request("DESCRIBE") }
      for (client, challenge) in zip(clients, challenges) {
        let login = try Self.wrongLogin(client, after: challenge)
        client.send(client.text("DESCRIBE", nil, [login]).utf8)
      }
      // Answers are put off for half a minute at most; the rest are not looked at.
      #expect(try eventually { try camera.server.statistics().failedLogins > 0 })
      let turnedAway = { clients.filter { $0.isClosed } }
      let isAnyTurnedAway = eventually {
        for client in clients { client.pump(0) }
        return !turnedAway().isEmpty
      }
      #expect(isAnyTurnedAway)
      for client in turnedAway() { #expect(try client.reply().status == 503) }
      #expect(try camera.server.statistics().failedLogins < 10)
    }

    @Test func `a flood of requests by one that reads no answer costs little, and others are served`() throws {
      let camera = try ServedCamera { $0.stallTime = Duration(seconds: 3) }
      let flooder = try camera.client(receiveBuffer: 4096)
      let text = Array(flooder.text("OPTIONS").utf8)
      let block = Array(repeatElement(text, count: 2000).joined())
      let viewer = try camera.client(receiveBuffer: 4 << 20)
      _ = try viewer.play(PlayTests.interleaved)
      let before = try Footprint.residentBytes()
      var (sent, most) = (0, 0)
      for _ in 0..<20 {
        let count = flooder.send(block, within: 0.3)
        sent += count
        most = max(most, try Footprint.residentBytes() - before)
        #expect(try viewer.request("OPTIONS").status == 200)
        if count == 0 { break }
      }
      #expect(most < 16 << 20, "\(most >> 10) KiB after \(sent) bytes")
      try ReceivedStream(viewer.take(60)).expectDecodable(missed: camera.pipeline.missedFrames)
      #expect(try eventually { try camera.server.statistics().connections == 1 })
    }
  }
#endif
