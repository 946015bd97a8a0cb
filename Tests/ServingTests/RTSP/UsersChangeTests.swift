#if X264
  import Serving
  import Foundation
  import Media
  import Platform
  import Streaming
  import TestSupport
  import Testing

  /// Users that change while some of them watch.
  @Suite(.serialized) struct UsersChangeTests {
    private static let size = PictureSize(width: 320, height: 240)

    /// The users of these names with these passwords.
    static func users(_ passwords: [String: String]) throws -> UsersFile {
      var file = UsersFile()
      for (name, password) in passwords { try file.set(UsersFile.User(name: UserName(name), password: password)) }
      return file
    }

    @Test func `a user with a changed or removed password is dropped at once, and others notice nothing`() throws {
      let cameras = try ServedCameras(["nursery": Self.size, "porch": PictureSize(width: 176, height: 144)]) {
        $0.users = try? Self.users([
          "alice": "wonder land", "bob": "builder 123", "carol": "christmas", "dave": "gravy boat",
        ])
      }
      func join(_ user: String, _ password: String, _ transport: String) throws -> (Member, String) {
        let member = try Member(cameras.client("nursery"), user, password)
        return (member, try member.play(transport))
      }
      let ports = try (0..<3).map { try DatagramPair(readsAlways: $0 == 0) }
      let alice = try join("alice", "wonder land", ports[0].transport)
      let alicesSecond = try join("alice", "wonder land", PlayTests.interleaved)
      let bob = try join("bob", "builder 123", ports[1].transport)
      let carol = try join("carol", "christmas", PlayTests.interleaved)
      // Whose connection is gone, while the session goes on.
      let dave = try join("dave", "gravy boat", ports[2].transport)
      dave.0.client.reset()
      func areThere(_ nursery: Int) throws -> Bool {
        try eventually {
          // Who reads nothing loses pictures.
          for client in [alicesSecond.0.client, carol.0.client] { client.pump(0) }
          return try cameras.server.statistics().viewers == ["nursery": nursery, "porch": 1]
        }
      }
      // Players beside them. The one that stays plays for eight seconds: the other one is there before.
      let leaving = try cameras.ffmpeg(cameras.url("porch", user: "carol:christmas@"), frames: 100_000)
      #expect(try areThere(5))
      let staying = try cameras.ffmpeg(
        cameras.url("nursery", user: "alice:wonder%20land@"), transport: "udp", frames: 240)
      #expect(try areThere(6))
      #expect(try cameras.server.viewers().map(\.user).prefix(5) == ["alice", "alice", "bob", "carol", "dave"])
      for port in ports { #expect(port.take(5).count >= 5) }
      var stayed = (ports[0].drain(), alicesSecond.0.client.take(5))

      // Bob has another password, Carol and Dave are gone, Eve is new.
      try cameras.server.set(users: Self.users(["alice": "wonder land", "bob": "another 123", "eve": "dropping in"]))
      #expect(bob.0.client.waitForClose() && carol.0.client.waitForClose())
      let isOver = eventually {
        for client in [bob.0.client, carol.0.client] { client.pump(0) }
        return !leaving.isRunning
      }
      #expect(isOver, "\(leaving.errorSoFar.suffix(500))")
      #expect(try eventually { try cameras.server.statistics().viewers["porch"] == 0 })
      let nursery = try #require(cameras.pipelines["nursery"])
      let gone = ports[1...].map { "rtsp udp 127.0.0.1:\($0.port)" }
      #expect(eventually { nursery.statistics.destinations.allSatisfy { !gone.contains($0.name) } })
      // The send thread may be in the middle of a picture still; those that follow are for Alice alone.
      stayed.0 += ports[0].drain()
      stayed.0 += ports[0].take(10)
      for port in ports[1...] { _ = port.drain() }
      stayed.0 += ports[0].take(10)
      #expect(ports[1].drain().isEmpty && ports[2].drain().isEmpty)
      // Their sessions are nobody's.
      for session in [bob.1, carol.1, dave.1] {
        #expect(try alice.0.request("PLAY", nil, ["Session: \(session)"]).status == 454)
      }
      // The nonce of before the change is good, and the next counter with it.
      #expect(try alice.0.request("GET_PARAMETER", nil, ["Session: \(alice.1)"]).status == 200)
      #expect(try Member(cameras.client("nursery"), "eve", "dropping in").request("DESCRIBE").status == 200)
      #expect(try Member(cameras.client("nursery"), "bob", "another 123").request("DESCRIBE").status == 200)
      #expect(try Member(cameras.client("nursery"), "carol", "christmas").request("DESCRIBE").status == 401)
      // Who reads nothing for half a minute is dropped.
      _ = eventually(within: 120) {
        alicesSecond.0.client.pump(0)
        return !staying.isRunning
      }
      try expectDecoded(staying, Self.size)
      stayed.0 += ports[0].take(30)
      stayed.1 += alicesSecond.0.client.take(1)
      // What she got first was taken before.
      #expect(try ReceivedStream(stayed.0).gaps == 0)
      try ReceivedStream(stayed.1).expectDecodable(missed: cameras.missedFrames("nursery"))
      #expect(try eventually { try cameras.server.viewers().map(\.user) == ["alice", "alice"] })
    }

    @Test func `clients without a login do not learn which cameras exist`() throws {
      let cameras = try ServedCameras(["nursery": Self.size]) { $0.users = try? Self.users(["alice": "wonder land"]) }
      for name in ["nursery", "garage"] {
        let client = try cameras.client(name)
        for method in ["DESCRIBE", "SETUP", "GET_PARAMETER"] { #expect(try client.request(method).status == 401) }
        #expect(try client.request("OPTIONS").status == 200)
        let member = try Member(client, "alice", "wonder land")
        #expect(try member.request("DESCRIBE").status == (name == "nursery" ? 200 : 404))
      }
    }

    /// An IPv4 address of this machine that is not its own name for itself.
    private static let outward: String? = {
      guard let directory = try? TemporaryDirectory(),
        let result = try? Subprocess.run(["hostname", "-I"], in: directory), result.status == 0
      else { return nil }
      return result.outputText.split(whereSeparator: \.isWhitespace).map(String.init).first { !$0.contains(":") }
    }()

    @Test func `a user with the role read cannot watch, and loses a running stream with that role`() throws {
      var users = try Self.users(["alice": "wonder land", "prom": "figures only"])
      func setRole(_ role: Role, of name: String) throws {
        var user = try #require(users[UserName(name)])
        user.role = role
        try users.set(user)
      }
      try setRole(.read, of: "prom")
      let cameras = try ServedCameras(["nursery": Self.size]) { $0.users = users }
      let prom = try Member(cameras.client("nursery"), "prom", "figures only")
      #expect(try prom.request("DESCRIBE").status == 403)
      #expect(prom.client.waitForClose())
      let told = cameras.server.events.take().map(\.description)
      #expect(told.contains { $0.hasSuffix("watching needs view: nightjar user role prom view") }, "\(told)")
      let refused = try cameras.ffmpeg(cameras.url("nursery", user: "prom:figures%20only@"), frames: 5)
      let answer = try refused.wait(limit: 60)
      #expect(answer.status != 0 && answer.error.contains("403 Forbidden"), "\(answer.error)")

      let alice = try Member(cameras.client("nursery"), "alice", "wonder land")
      _ = try alice.play(PlayTests.interleaved)
      #expect(alice.client.take(5).count >= 5)
      try setRole(.read, of: "alice")
      try setRole(.view, of: "prom")
      try cameras.server.set(users: users)
      #expect(alice.client.waitForClose())
      #expect(try eventually { try cameras.server.statistics().viewers["nursery"] == 0 })
      #expect(try Member(cameras.client("nursery"), "prom", "figures only").request("DESCRIBE").status == 200)
    }

    @Test(.enabled(if: outward != nil, "needs an address beside the loopback one"))
    func `without users the door is shut to others, and with users again it is open to them`() throws {
      let outward = try #require(Self.outward)
      let alices = try Self.users(["alice": "wonder land"])
      let cameras = try ServedCameras(["nursery": Self.size]) {
        $0.listeners = [.init(address: "0.0.0.0", port: 0)]
        $0.users = alices
      }
      let outside = try Member(cameras.client("nursery", host: outward), "alice", "wonder land")
      let inside = try Member(cameras.client("nursery"), "alice", "wonder land")
      let ports = try (DatagramPair(outward), DatagramPair(readsAlways: true))
      _ = try outside.play(ports.0.transport)
      _ = try inside.play(ports.1.transport)
      var first = ports.1.take(5)
      #expect(ports.0.take(5).count >= 5)

      try cameras.server.set(users: nil)
      #expect(outside.client.waitForClose())
      #expect(eventually { cameras.pipelines["nursery"]?.statistics.destinations.count == 1 })
      // The send thread may be in the middle of a picture still.
      first += ports.1.drain()
      first += ports.1.take(10)
      _ = ports.0.drain()
      first += ports.1.take(10)
      #expect(ports.0.drain().isEmpty)
      #expect(try cameras.client("nursery", host: outward).waitForClose())
      // Here nobody is asked.
      let guest = try cameras.client("nursery")
      _ = try guest.play(PlayTests.interleaved)
      #expect(guest.take(5).count >= 5)
      try ReceivedStream(first + ports.1.take(10)).expectDecodable()

      try cameras.server.set(users: alices)
      // Nor was the guest, who is asked now, as everybody is.
      #expect(guest.waitForClose())
      #expect(try cameras.client("nursery").request("DESCRIBE").status == 401)
      let back = try Member(cameras.client("nursery", host: outward), "alice", "wonder land")
      #expect(try back.request("DESCRIBE").status == 200)
      // Alice was proved all the while.
      #expect(try ReceivedStream(first + ports.1.take(10)).gaps <= 1)
      #expect(try eventually { try cameras.server.viewers().map(\.user) == ["alice"] })
    }

    @Test(.enabled(if: outward != nil, "needs an address beside the loopback one"))
    func `a server for this host only stays one`() throws {
      let outward = try #require(Self.outward)
      let alices = try Self.users(["alice": "wonder land"])
      let cameras = try ServedCameras(["nursery": Self.size]) {
        $0.listeners = [.init(address: "0.0.0.0", port: 0)]
        $0.users = alices
        $0.servesThisMachineAlone = true
      }
      try cameras.server.set(users: nil)
      try cameras.server.set(users: alices)
      #expect(try cameras.client("nursery", host: outward).waitForClose())
      #expect(try cameras.client("nursery").request("DESCRIBE").status == 401)
    }

    @Test func `a hundred changes of users and cameras disturb nobody`() throws {
      let files = try [
        Self.users(["alice": "wonder land"]), Self.users(["alice": "wonder land", "bob": "builder 123"]),
      ]
      let cameras = try ServedCameras(["nursery": Self.size]) { $0.users = files[0] }
      let ports = try DatagramPair(readsAlways: true)
      let (alice, second) = try (
        Member(cameras.client("nursery"), "alice", "wonder land"),
        Member(cameras.client("nursery"), "alice", "wonder land")
      )
      let session = try alice.play(ports.transport)
      _ = try second.play(PlayTests.interleaved)
      var packets: [Data] = []
      for round in 0..<100 {
        try cameras.server.set(users: files[round % 2])
        try cameras.set("porch", nil)
        usleep(20_000)
        packets += ports.drain()
        second.client.pump(0)
      }
      #expect(try alice.request("GET_PARAMETER", nil, ["Session: \(session)"]).status == 200)
      try ReceivedStream(packets + ports.take(10)).expectDecodable()
      let interleaved = second.client.take(30)
      #expect(interleaved.count > 30)
      try ReceivedStream(interleaved).expectDecodable(missed: cameras.missedFrames("nursery"))
    }
  }
#endif
