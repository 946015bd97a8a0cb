#if X264
  import Foundation
  import Media
  import Platform
  import Serving
  import Streaming
  import TestSupport
  import Testing

  /// The life and the end of sessions.
  @Suite(.serialized) struct SessionTests {
    /// An RTCP receiver report without blocks (RFC 3550 section 6.4.2).
    private static let report: [UInt8] = [0x80, 201, 0, 1, 1, 2, 3, 4]

    @Test func `a UDP session outlives its connection while its port is open, and ends soon afterwards`() throws {
      let camera = try ServedCamera()
      var client: RTSPClient? = try camera.client()
      var ports: DatagramPair? = try DatagramPair()
      let transport = try #require(ports).transport
      _ = try client?.play(transport)
      #expect(ports?.take(5).isEmpty == false)
      client = nil
      #expect(try eventually { try camera.server.statistics().connections == 0 })
      // Longer than a client that is gone keeps its session.
      usleep(5_000_000)
      _ = ports?.drain()
      #expect(ports?.take(5).isEmpty == false)
      #expect(try camera.server.statistics().sessions == 1)
      ports = nil
      // The time-out is a minute.
      #expect(try camera.settles(sessions: 0))
      #expect(eventually { camera.pipeline.statistics.viewers.isEmpty })
    }

    @Test(arguments: [false, true])
    func `a session whose port is closed goes on while a connection of its client stands`(hasReturned: Bool) throws {
      // A connection is closed after that time without a request, unless a session needs it.
      let camera = try ServedCamera { $0.idleTime = Duration(seconds: 6) }
      var client = try camera.client()
      var ports: DatagramPair? = try DatagramPair()
      let transport = try #require(ports).transport
      let session = try #require(try client.play(transport).setup.session)
      #expect(ports?.take(5).isEmpty == false)
      if hasReturned {
        client = try camera.client()
        #expect(try client.request("GET_PARAMETER", nil, ["Session: \(session)"]).status == 200)
        #expect(try eventually { try camera.server.statistics().connections == 1 })
      }
      ports = nil
      #expect(eventually { camera.pipeline.statistics.viewers.first?.errorNumber == ECONNREFUSED })
      usleep(9_000_000)
      #expect(try client.request("GET_PARAMETER", nil, ["Session: \(session)"]).status == 200)
    }

    @Test func `every sign of life keeps a session, and without one it ends`() throws {
      var isJudged = false
      for _ in 0..<5 where !isJudged { isJudged = try keepSessions() }
      #expect(isJudged, "the host was held up for seconds, five times")
    }

    /// Six sessions, of which one is silent. Returns `false`, with nothing judged, if the host was held up for nearly
    /// as long as a silent session lives: then the others may rightly end, too.
    private func keepSessions() throws -> Bool {
      let camera = try ServedCamera { $0.sessionSeconds = 8 }
      let clients = try (0..<6).map { _ in try camera.client() }
      let ports = try (0..<6).map { _ in try DatagramPair() }
      var (pause, last) = (Duration.zero, Instant.now())
      func noteSigns() {
        let now = Instant.now()
        (pause, last) = (max(pause, now - last), now)
      }
      var sessions: [String] = []
      var control: UInt16 = 0
      for (index, client) in clients.enumerated() {
        let (setup, _) = try client.play(index == 1 || index == 4 ? PlayTests.interleaved : ports[index].transport)
        sessions.append(setup.session ?? "")
        if index == 0 { control = try #require(setup.serverControlPort) }
      }
      // One that waits is kept alive by RTCP too.
      var statuses: Set = [try clients[4].request("PAUSE", nil, ["Session: \(sessions[4])"]).status]
      let begun = try camera.server.statistics().sessions
      // Until the last one has ended, which keeps silent, and half as long again: the others go on.
      var (rounds, rest) = (0, 10)
      while rounds < 100, rest > 0 {
        rounds += 1
        if try camera.server.statistics().sessions < 6 { rest -= 1 }
        usleep(400_000)
        try ports[0].send(Self.report, to: control)
        clients[1].send(channel: 1, Self.report)
        statuses.insert(try clients[2].request("GET_PARAMETER", nil, ["Session: \(sessions[2])"]).status)
        statuses.insert(try clients[3].request("OPTIONS", nil, ["Session: \(sessions[3])"]).status)
        clients[4].send(channel: 1, Self.report)
        clients[1].pump(0)
        noteSigns()
      }
      let left = try camera.server.statistics().sessions
      noteSigns()
      guard pause < .seconds(6) else { return false }
      #expect(statuses == [200] && begun == 6 && left == 5, "\(statuses), \(begun) and \(left) sessions")
      #expect(try clients[5].request("GET_PARAMETER", nil, ["Session: \(sessions[5])"]).status == 454)
      _ = ports[0].drain()
      #expect(ports[0].take(5).count >= 5)
      // And now all do.
      #expect(try camera.settles(sessions: 0))
      #expect(eventually { camera.pipeline.statistics.destinations.isEmpty })
      return true
    }

    /// RTCP of a viewer that leaves (RFC 3550 section 6.6): a report and a BYE of its source.
    private static let goodbye: [UInt8] = report + [0x81, 203, 0, 1, 1, 2, 3, 4]

    @Test(arguments: [true, false]) func `a viewer that says BYE gets nothing more`(overTCP: Bool) throws {
      // A silent session would end by itself only long after the test has given up.
      let camera = try ServedCamera { $0.sessionSeconds = 600 }
      let client = try camera.client()
      let ports = try DatagramPair()
      let (setup, _) = try client.play(overTCP ? PlayTests.interleaved : ports.transport)
      #expect((overTCP ? client.take(5) : ports.take(5)).count >= 5)
      func say(_ bytes: [UInt8]) throws {
        if overTCP {
          client.send(channel: 1, bytes)
        } else {
          try ports.send(bytes, to: try #require(setup.serverControlPort))
        }
      }
      // What bears the stream's own source is none of the viewer's.
      let packet = try #require((overTCP ? client.take(1) : ports.take(1)).first)
      try say(Self.report + [0x81, 203, 0, 1] + packet.dropFirst(8).prefix(4))
      #expect((overTCP ? client.take(20) : ports.take(20)).count >= 20)
      try say(Self.goodbye)
      #expect(try eventually { try camera.server.statistics().playing == 0 })
      #expect(eventually { camera.pipeline.statistics.destinations.isEmpty })
      // The session is there still: for a TEARDOWN, or if it thinks better of it.
      let session = "Session: \(setup.session ?? "")"
      let play = try client.request("PLAY", nil, [session])
      #expect(play.status == 200 && play.start != nil)
      #expect((overTCP ? client.take(5) : ports.take(5)).count >= 5)
      #expect(try client.request("TEARDOWN", nil, [session]).status == 200)
    }

    @Test func `viewers that vanish leave nothing behind`() throws {
      // No client stands still for as long between SETUP and PLAY. Closed ports end their sessions before.
      let camera = try ServedCamera { $0.sessionSeconds = 10 }
      for _ in 0..<6 {
        let client = try camera.client()
        _ = try client.play(PlayTests.interleaved)
        _ = client.take(5)
        client.reset()
        let silent = try camera.client()
        let ports = try DatagramPair()
        _ = try silent.play(ports.transport)
        silent.reset()
        // One that is gone before its first packet.
        let hasty = try camera.client()
        let setup = try hasty.request("SETUP", nil, ["Transport: \(PlayTests.interleaved)"])
        hasty.send(hasty.text("PLAY", nil, ["Session: \(setup.session ?? "")"]).utf8)
        hasty.reset()
      }
      #expect(try camera.settles(sessions: 0, within: 100))
      #expect(try eventually { try camera.server.statistics().connections == 0 })
      #expect(try camera.server.statistics().playing == 0)
      #expect(eventually { camera.pipeline.statistics.destinations.isEmpty })
      // The program's own, by what is open towards the camera's port: other tests run beside this one.
      let hex = String(format: "0100007F:%04X", camera.port)
      func connected() throws -> [Substring] {
        try KernelFile.text("/proc/net/tcp").split(separator: "\n").filter { line in
          let fields = line.split(separator: " ")
          return fields.count > 3 && fields[1] == hex && fields[3] == "01"
        }
      }
      #expect(try eventually { try connected().isEmpty })
    }

    @Test func `sessions are limited, in all and of one address`() throws {
      let camera = try ServedCamera {
        $0.sessions = 3
        $0.sessionsPerAddress = 2
      }
      let client = try camera.client()
      func setup(_ client: RTSPClient) throws -> RTSPClient.Reply {
        try client.request("SETUP", nil, ["Transport: RTP/AVP/TCP;unicast;interleaved=0-1"])
      }
      let first = try setup(client)
      #expect(first.status == 200)
      #expect(try setup(client).status == 200)
      let share = try setup(client)
      #expect(share.status == 503, "\(share)")
      #expect(share.body == "all 2 sessions of this address are in use; close one\r\n", "\(share)")
      let other = try camera.client(from: "127.0.0.2")
      #expect(try setup(other).status == 200)
      let full = try setup(other)
      #expect(full.status == 503 && full.body == "all 3 sessions are in use; try again later\r\n", "\(full)")
      // The log has them too, for the user who can allow more.
      let lines = Set(camera.server.events.take().map(\.description))
      let mend = ", or allow more with --rtsp-sessions"
      for line in [
        "a request of 127.0.0.1 refused: all 2 sessions of this address are in use; close one\(mend)",
        "a request of 127.0.0.2 refused: all 3 sessions are in use; try again later\(mend)",
      ] {
        #expect(lines.contains(line), "\(lines)")
      }
      #expect(try client.request("TEARDOWN", nil, ["Session: \(first.session ?? "")"]).status == 200)
      #expect(try setup(other).status == 200)
      #expect(try camera.server.statistics().sessions == 3)
      // Another address has no use for a session's name.
      #expect(try other.request("TEARDOWN", nil, ["Session: \(first.session ?? "")"]).status == 454)
    }

    @Test func `where sessions are full, a silent one without a connection makes room, and a viewer stays`() throws {
      let camera = try ServedCamera {
        $0.sessions = 2
        $0.silenceSeconds = 3
      }
      let (silentPorts, ports) = (try DatagramPair(), try DatagramPair())
      // The viewer is the older session: its reports alone keep it.
      var client: RTSPClient? = try camera.client()
      let control = try #require(try client?.play(ports.transport).setup.serverControlPort)
      var silent: RTSPClient? = try camera.client()
      #expect(try silent?.request("SETUP", nil, ["Transport: \(silentPorts.transport)"]).status == 200)
      (silent, client) = (nil, nil)
      for _ in 0..<30 {
        try ports.send(Self.report, to: control)
        usleep(100_000)
      }
      let late = try camera.client()
      // The time-out is a minute.
      let isServed = try eventually(within: 30) {
        try ports.send(Self.report, to: control)
        return try late.request("SETUP", nil, ["Transport: \(PlayTests.interleaved)"]).status == 200
      }
      #expect(isServed)
      #expect(try camera.server.statistics().sessions == 2)
      _ = ports.drain()
      #expect(ports.take(5).count >= 5)
    }

    @Test(arguments: [true, false])
    func `a session that makes room says BYE, unless its player has started again at its ports`(isAtItsPorts: Bool)
      throws
    {
      let camera = try ServedCamera {
        $0.sessions = 1
        $0.silenceSeconds = 1
      }
      let (ports, others) = (try DatagramPair(), try DatagramPair())
      var client: RTSPClient? = try camera.client()
      #expect(try client?.play(ports.transport).setup.status == 200)
      client = nil
      let transport = isAtItsPorts ? ports.transport : others.transport
      let again = try camera.client()
      #expect(
        try eventually(within: 30) {
          try again.request("SETUP", nil, ["Transport: \(transport)"]).status == 200
        })
      #expect(eventually { camera.pipeline.statistics.destinations.isEmpty })
      usleep(isAtItsPorts ? 500_000 : 0)
      let isTold = eventually(within: isAtItsPorts ? 0 : 30) {
        PresentationTests.goodbyes(ports.drain(control: true)) > 0
      }
      #expect(isTold == !isAtItsPorts)
    }

    @Test func `connections with sessions are limited, in all and of one address`() throws {
      let camera = try ServedCamera {
        $0.connections = 3
        $0.connectionsPerAddress = 2
      }
      func watching(from source: String) throws -> RTSPClient {
        let client = try camera.client(from: source)
        #expect(try client.request("SETUP", nil, ["Transport: \(PlayTests.interleaved)"]).status == 200)
        return client
      }
      let two = [try watching(from: "127.0.0.1"), try watching(from: "127.0.0.1")]
      #expect(try camera.client().waitForClose())
      let other = try watching(from: "127.0.0.2")
      #expect(try camera.client(from: "127.0.0.3").waitForClose())
      #expect(try eventually { try camera.server.statistics().turnedAway == 2 })
      for client in two + [other] { #expect(try client.request("OPTIONS").status == 200) }
      other.reset()
      #expect(try eventually { try camera.server.statistics().connections == 2 })
      #expect(try camera.client(from: "127.0.0.3").request("OPTIONS").status == 200)
    }

    @Test func `a connection with a login is never closed for another`() throws {
      let users = try UsersChangeTests.users(["alice": "wonder land"])
      let camera = try ServedCamera {
        $0.users = users
        $0.connections = 8
        $0.connectionsPerAddress = 2
      }
      // Without a session, and the one that has been silent for the longest time.
      let first = try Member(camera.client(from: "127.0.0.2"), "alice", "wonder land")
      #expect(try first.request("DESCRIBE").status == 200)
      let other = try camera.client(from: "127.0.0.2")
      #expect(try other.request("OPTIONS").status == 200)
      let client = try camera.client(from: "127.0.0.2")
      #expect(other.waitForClose())
      let second = try Member(client, "alice", "wonder land")
      for member in [first, second] { #expect(try member.request("DESCRIBE").status == 200) }
      // The share of the address is theirs.
      #expect(try camera.client(from: "127.0.0.2").waitForClose())
      #expect(try camera.server.statistics().turnedAway == 1)
      for member in [first, second] { #expect(try member.request("DESCRIBE").status == 200) }
      #expect(try camera.client(from: "127.0.0.3").request("OPTIONS").status == 200)
    }

    @Test func `a connection without a request is closed first, from the address with the most`() throws {
      let camera = try ServedCamera {
        $0.connections = 8
        $0.connectionsPerAddress = 3
      }
      // Half of the room is for those that neither watch nor have logged in.
      let asked = try camera.client(from: "127.0.0.2")
      #expect(try asked.request("OPTIONS").status == 200)
      let (first, second) = (try camera.client(from: "127.0.0.2"), try camera.client(from: "127.0.0.2"))
      #expect(try eventually { try camera.server.statistics().connections == 3 })
      // An address's share.
      let third = try camera.client(from: "127.0.0.2")
      #expect(first.waitForClose())
      let viewer = try camera.client(from: "127.0.0.3")
      #expect(try eventually { try camera.server.statistics().connections == 4 })
      // The room of all.
      let late = try camera.client(from: "127.0.0.4")
      #expect(second.waitForClose())
      _ = try viewer.play(PlayTests.interleaved)
      // Who watches takes no such room.
      let later = try camera.client(from: "127.0.0.4")
      #expect(try later.request("OPTIONS").status == 200)
      let last = try camera.client(from: "127.0.0.5")
      #expect(
        eventually {
          for client in [third, late] { client.pump(0) }
          return third.isClosed || late.isClosed
        })
      for client in [asked, viewer, later, last] { #expect(try client.request("OPTIONS").status == 200) }
      #expect(viewer.take(5).count >= 5)
      #expect(try camera.server.statistics().turnedAway == 0)
    }
  }
#endif
