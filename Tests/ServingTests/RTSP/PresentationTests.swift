#if X264
  import Foundation
  import Media
  import Platform
  import Serving
  import Streaming
  import TestSupport
  import Testing

  /// Several cameras behind one port, which come, go and are exchanged.
  @Suite(.serialized) struct PresentationTests {
    static let (nursery, porch, other) = (
      PictureSize(width: 320, height: 240), PictureSize(width: 176, height: 144), PictureSize(width: 240, height: 160)
    )

    @Test func `players watch two cameras at once, each at its path`() throws {
      // GStreamer 1.22 at times cancels its own TEARDOWN: its session ends by time then.
      let cameras = try ServedCameras(["nursery": Self.nursery, "porch": Self.porch]) { $0.sessionSeconds = 10 }
      var (decoding, playing): ([(Subprocess, PictureSize)], [(Subprocess, PictureSize)]) = ([], [])
      for (name, size) in [("nursery", Self.nursery), ("porch/", Self.porch)] {
        decoding.append((try cameras.ffmpeg(cameras.url(name)), size))
        decoding.append((try cameras.ffmpeg(cameras.url(name), transport: "udp"), size))
        playing.append((try cameras.gstreamer(cameras.url(name), protocols: "udp"), size))
        playing.append((try cameras.gstreamer(cameras.url(name), protocols: "tcp"), size))
      }
      for (process, size) in decoding { try expectDecoded(process, size) }
      for (process, size) in playing { try expectPlayed(process, size) }
      let result = try cameras.ffmpeg(cameras.url("garage")).wait(limit: 60)
      #expect(result.status != 0 && result.error.contains("404"), "\(result.error)")
      #expect(try eventually { try cameras.server.statistics().viewers == ["nursery": 0, "porch": 0] })
      let told = cameras.server.events.take()
      for name in ["nursery", "porch"] {
        let came = told.count { if case .came(_, let camera, _) = $0 { camera == name } else { false } }
        let left = told.count { if case .left(_, let camera, _, _) = $0 { camera == name } else { false } }
        #expect(came == 4 && left == 4, "\(told)")
      }
      #expect(RTSPServerEvent.came(viewer: "v", camera: "porch").description == "viewer v is watching porch")
      #expect(
        RTSPServerEvent.came(viewer: "v", camera: "porch", .sound).description == "viewer v is listening to porch")
      #expect(
        RTSPServerEvent.left(viewer: "v", camera: "porch", after: Duration(seconds: 3), nil).description
          == "viewer v left porch after 3 s")
    }

    @Test func `the statistics name the camera of each viewer, and a session belongs to one camera`() throws {
      let cameras = try ServedCameras(["nursery": Self.nursery, "porch": Self.porch])
      let (client, second) = (try cameras.client("nursery"), try cameras.client("porch"))
      let ports = try DatagramPair()
      let session = try #require(try client.play(PlayTests.interleaved).setup.session)
      _ = try second.play(ports.transport)
      #expect(try cameras.server.statistics().viewers == ["nursery": 1, "porch": 1])
      let viewers = try cameras.server.viewers()
      #expect(viewers.map(\.camera) == ["nursery", "porch"])
      #expect(viewers[1].name == "rtsp udp 127.0.0.1:\(ports.port)" && viewers[1].user == nil)
      #expect(client.take(10).count >= 10 && ports.take(10).count >= 10)
      // The packets are counted once they have left.
      #expect(try eventually { try cameras.server.viewers()[1].figures?.packets ?? 0 >= 10 })
      // What is another's stays another's.
      let header = "Session: \(session)"
      #expect(try client.request("TEARDOWN", cameras.url("porch"), [header]).status == 454)
      #expect(try client.request("PAUSE", nil, [header]).status == 200)
      let setup = try client.request(
        "SETUP", cameras.url("porch/trackID=0"), [header, "Transport: \(ports.transport)"])
      #expect(setup.status == 459)
      // One connection may have sessions of both.
      let beside = try client.request("SETUP", cameras.url("porch"), ["Transport: RTP/AVP/TCP;interleaved=2-3"])
      #expect(beside.status == 200 && beside.session != session)
      for (name, identifier) in [("nursery/", session), ("porch", beside.session ?? "")] {
        let play = try client.request("PLAY", cameras.url(name), ["Session: \(identifier)"])
        #expect(play.status == 200)
        let path = name.hasSuffix("/") ? name : name + "/"
        #expect(play.header("RTP-Info")?.contains("url=\(cameras.url(path))trackID=0;") == true, "\(play)")
      }
      #expect(client.take(10, channel: 2).count >= 10)
    }

    /// RTCP packets with a BYE among them (RFC 3550 section 6.6).
    static func goodbyes(_ packets: [Data]) -> Int {
      packets.count { packet in
        var rest = packet
        while rest.count >= 4 {
          let start = rest.startIndex
          if rest[start + 1] == 203 { return true }
          rest = rest.dropFirst(4 * (Int(rest[start + 2]) << 8 + Int(rest[start + 3]) + 1))
        }
        return false
      }
    }

    @Test(arguments: [true, false])
    func `a camera is exchanged, taken away and brought back, and the other loses nothing`(isToldFirst: Bool) throws {
      let cameras = try ServedCameras(["nursery": Self.nursery, "porch": Self.porch]) {
        // On a busy host the send thread may say BYE late. A camera that ends by itself has said it before.
        if isToldFirst { $0.goodbyeTime = Duration(seconds: 3) }
      }
      // What nobody reads for a while has room.
      let stayingTCP = try RTSPClient(port: cameras.port, path: "nursery", receiveBuffer: 4 << 20)
      let stayingUDP = try DatagramPair()
      let staying = try cameras.client("nursery")
      let session = try #require(try staying.play(stayingUDP.transport).setup.session)
      _ = try stayingTCP.play(PlayTests.interleaved)
      // Two players that end with the first fault; they need as long as all of this takes, or longer.
      let frames = isToldFirst ? 700 : 150
      let ffmpeg = try cameras.ffmpeg(cameras.url("nursery"), transport: "udp", frames: frames)
      let gstreamer = try cameras.gstreamer(cameras.url("nursery"), protocols: "tcp", frames: frames)
      var (overUDP, overTCP): ([Data], [Data]) = ([], [])
      var descriptions: Set<String> = []
      for round in 0..<6 {
        let size = round % 2 == 0 ? Self.other : Self.porch
        let (tcp, udp, paused) = (try cameras.client("porch"), try cameras.client("porch"), try cameras.client("porch"))
        let ports = try DatagramPair()
        let description = try tcp.request("DESCRIBE").body
        descriptions.formUnion(description.components(separatedBy: "\r\n").filter { $0.hasPrefix("o=") })
        _ = try tcp.play(PlayTests.interleaved)
        let watching = try #require(try udp.play(ports.transport).setup.session)
        let waiting = try #require(
          try paused.request("SETUP", nil, ["Transport: RTP/AVP/TCP;unicast;interleaved=0-1"]).session)
        #expect(tcp.take(5).count >= 5 && ports.take(5).count >= 5)
        overTCP += stayingTCP.take(0)
        let isTakenAway = round % 3 == 2
        try cameras.set("porch", isTakenAway ? nil : size, isToldFirst: isToldFirst)
        // Those over the connection have to try again; those over UDP are told, and their sessions are none.
        #expect(tcp.waitForClose() && paused.waitForClose())
        let goodbyesOverTCP = Self.goodbyes(tcp.take(0, channel: 1))
        #expect(goodbyesOverTCP == 1)
        var control: [Data] = []
        let isTold = eventually {
          control += ports.drain(control: true)
          return Self.goodbyes(control) > 0
        }
        #expect(isTold)
        stayingTCP.pump(0, limit: 1 << 20)
        for identifier in [watching, waiting] {
          #expect(try udp.request("GET_PARAMETER", nil, ["Session: \(identifier)"]).status == 454)
        }
        _ = ports.drain()
        #expect(try udp.request("DESCRIBE").status == (isTakenAway ? 404 : 200))
        #expect(ports.drain().isEmpty)
        if isTakenAway {
          #expect(try cameras.server.statistics().viewers.keys.sorted() == ["nursery"])
          try cameras.set("porch", size)
        }
        // The same connection sees the new one at once.
        _ = try udp.play(ports.transport)
        let stream = try ReceivedStream(ports.take(30))
        stayingTCP.pump(0, limit: 1 << 20)
        try stream.expectDecodable()
        let probe = try stream.probe()
        #expect(probe.values["width"] == "\(size.width)")
        overUDP += stayingUDP.drain()
        stayingTCP.pump(0, limit: 1 << 20)
        #expect(try staying.request("GET_PARAMETER", nil, ["Session: \(session)"]).status == 200)
      }
      #expect(descriptions.count == 6, "\(descriptions)")
      // Before anything else is waited for: who reads nothing loses frames by itself.
      overUDP += stayingUDP.drain()
      overTCP += stayingTCP.take(1)
      let viewers = try #require(cameras.pipelines["nursery"]).statistics.destinations
      #expect(viewers.count >= 2 && viewers.allSatisfy { $0.lost == 0 }, "\(viewers)")
      #expect(viewers.allSatisfy { $0.framesDropped == 0 || $0.name.hasPrefix("rtsp tcp") }, "\(viewers)")
      let missed = cameras.missedFrames("nursery")
      #expect(!stayingTCP.isClosed && Self.goodbyes(stayingUDP.drain(control: true)) == 0)
      try expectDecoded(ffmpeg, Self.nursery)
      try expectPlayed(gstreamer, Self.nursery)
      for packets in [overUDP, overTCP] {
        #expect(packets.count > 60)
        try ReceivedStream(packets).expectDecodable(missed: missed)
      }
    }

    @Test func `a connection with a session of another camera stays, and that goes on`() throws {
      // On a busy host the send thread may say BYE late.
      let cameras = try ServedCameras(["nursery": Self.nursery, "porch": Self.porch]) {
        $0.goodbyeTime = Duration(seconds: 3)
      }
      let client = try cameras.client("nursery")
      let session = try #require(try client.play(PlayTests.interleaved).setup.session)
      let beside = try client.request("SETUP", cameras.url("porch"), ["Transport: RTP/AVP/TCP;interleaved=2-3"])
      let second = try #require(beside.session)
      #expect(try client.request("PLAY", cameras.url("porch"), ["Session: \(second)"]).status == 200)
      var packets: [Data] = []
      let both = eventually {
        client.pump(20)
        return [0, 2].allSatisfy { channel in client.packets.count { $0.channel == channel } > 10 }
      }
      #expect(both)
      try cameras.set("porch", nil)
      func farewells() -> Int { Self.goodbyes(client.packets.filter { $0.channel == 3 }.map(\.bytes)) }
      #expect(
        eventually {
          client.pump(20)
          return farewells() > 0
        })
      // Beyond the time in which a connection would be closed.
      let end = Instant.now() + Duration(seconds: 4)
      while Instant.now() < end { client.pump(20) }
      #expect(farewells() == 1)
      packets += client.take(30)
      #expect(try client.request("GET_PARAMETER", nil, ["Session: \(session)"]).status == 200)
      #expect(try client.request("GET_PARAMETER", nil, ["Session: \(second)"]).status == 454)
      try ReceivedStream(packets + client.take(10)).expectDecodable(missed: cameras.missedFrames("nursery"))
    }

    @Test func `a PLAY that waits for its first picture is answered when its camera goes`() throws {
      let cameras = try ServedCameras(["nursery": Self.nursery])
      for _ in 0..<5 {
        let client = try cameras.client("nursery")
        let setup = try client.request("SETUP", nil, ["Transport: \(PlayTests.interleaved)"])
        client.send(client.text("PLAY", nil, ["Session: \(setup.session ?? "")"]).utf8)
        try cameras.set("nursery", Self.nursery)
        // Before, while or after it is answered: the connection ends, and the server goes on.
        #expect(client.waitForClose())
      }
      #expect(try eventually { try cameras.server.statistics().sessions == 0 })
    }

    @Test func `a camera that is gone leaves nothing behind`() throws {
      let cameras = try ServedCameras(["nursery": Self.nursery, "porch": Self.porch])
      weak var former: Pipeline?
      for round in 0..<4 {
        former = cameras.pipelines["porch"]
        let clients = try (0..<3).map { _ in try cameras.client("porch") }
        let ports = try DatagramPair()
        _ = try clients[0].play(PlayTests.interleaved)
        _ = try clients[1].play(ports.transport)
        _ = try clients[2].request("DESCRIBE")
        if round == 0 { _ = clients[0].take(5) }
        try cameras.set("porch", Self.porch)
        #expect(clients[0].waitForClose())
        #expect(eventually { former == nil }, "round \(round)")
        #expect(try eventually { try cameras.server.statistics().sessions == 0 })
      }
    }

    @Test func `the limits on sessions are those of all cameras together`() throws {
      let cameras = try ServedCameras(["nursery": Self.nursery, "porch": Self.porch]) {
        $0.sessions = 3
        $0.sessionsPerAddress = 2
      }
      func setUp(_ name: String, from source: String) throws -> (RTSPClient, Int) {
        let client = try RTSPClient(port: cameras.port, path: name, from: source)
        return (client, try client.request("SETUP", nil, ["Transport: \(PlayTests.interleaved)"]).status)
      }
      var kept: [RTSPClient] = []
      for (name, source, status) in [
        ("nursery", "127.0.0.1", 200), ("porch", "127.0.0.1", 200), ("porch", "127.0.0.1", 503),
        ("porch", "127.0.0.2", 200), ("nursery", "127.0.0.3", 503),
      ] {
        let (client, answer) = try setUp(name, from: source)
        #expect(answer == status, "\(name) \(source)")
        kept.append(client)
      }
    }

    // MARK: Names and groups

    private static let groups = [
      "nursery": RTSPServerConfiguration.Group(address: "239.255.77.1", port: 15_004, timeToLive: 0),
      "porch": RTSPServerConfiguration.Group(address: "239.255.77.2", port: 15_004, timeToLive: 0),
    ]

    @Test func `cameras that cannot be served together are refused, and nothing changes`() throws {
      let cameras = try ServedCameras(["nursery": Self.nursery, "porch": Self.porch], groups: Self.groups)
      let client = try cameras.client("nursery")
      _ = try client.play(PlayTests.interleaved)
      let pipelines = try (#require(cameras.pipelines["nursery"]), #require(cameras.pipelines["porch"]))
      func refusal(_ second: Presentation) throws -> RTSPServerError {
        let first = Presentation(name: "nursery", pipeline: pipelines.0, group: Self.groups["nursery"])
        let error = #expect(throws: RTSPServerError.self) { try cameras.server.setPresentations([first, second]) }
        return try #require(error)
      }
      for name in ["", ".", "..", "a/b", "/porch", "a\nb", "trackID=0"] {
        #expect(try refusal(Presentation(name: name, pipeline: pipelines.1)) == .name(name))
      }
      #expect(try refusal(Presentation(name: "nursery", pipeline: pipelines.1)) == .repeatedName("nursery"))
      // RTP where the other's is, and where its RTCP is.
      for port in [15_004, 15_005, 15_003] as [UInt16] {
        let group = RTSPServerConfiguration.Group(address: "239.255.77.1", port: port, timeToLive: 0)
        let error = try refusal(Presentation(name: "porch", pipeline: pipelines.1, group: group))
        #expect(error == .sameGroup("nursery", "porch", address: "239.255.77.1", port: port))
      }
      #expect(
        RTSPServerError.name("a/b").description
          == "a camera named 'a/b': no URL can have that; choose letters, digits, '-', '_' and '.', as in nursery")
      #expect(
        RTSPServerError.repeatedName("nursery").description
          == "two cameras named 'nursery': each needs its own URL; rename one")
      #expect(
        RTSPServerError.sameGroup("nursery", "porch", address: "239.255.77.1", port: 15_004).description
          == "the cameras 'nursery' and 'porch' want the same multicast group 239.255.77.1, port 15004: give each its "
          + "own group, or ports that are at least four apart: two for the picture, two for the sound")
      // No camera's destination may be the group of another either.
      for pipeline in [pipelines.0, pipelines.1] {
        for group in ["239.255.77.1", "239.255.77.2"] {
          #expect(throws: StreamDestinationError.self) {
            try pipeline.add(StreamDestination(host: group, port: 15_004, payload: .h264))
          }
        }
      }
      try pipelines.1.add(StreamDestination(host: "127.0.0.1", port: 15_004, payload: .h264))
      #expect(throws: StreamDestinationError.self) {
        try cameras.set(
          "nursery", group: RTSPServerConfiguration.Group(address: "127.0.0.1", port: 15_004, timeToLive: 0))
      }
      #expect(throws: StreamDestinationError.self) {
        try pipelines.0.add(StreamDestination(host: "239.255.77.1", port: 15_004, payload: .h264))
      }
      #expect(try client.request("DESCRIBE", cameras.url("porch")).status == 200)
      #expect(client.take(30).count >= 30)
      // A group that is none any more may be a destination.
      try cameras.set("nursery", group: nil)
      try pipelines.0.add(StreamDestination(host: "239.255.77.1", port: 15_004, payload: .h264))
    }

    @Test func `another group is another way for who is in it, and nobody else notices`() throws {
      let cameras = try ServedCameras(["nursery": Self.nursery, "porch": Self.porch], groups: Self.groups)
      let member = try cameras.client("nursery")
      let ports = try DatagramPair()
      let single = try cameras.client("nursery")
      let session = try #require(try single.play(ports.transport).setup.session)
      let neighbour = try cameras.client("porch")
      let other = try #require(try neighbour.play("RTP/AVP;multicast").setup.session)
      let joined = try member.play("RTP/AVP;multicast").setup
      #expect(joined.header("Transport")?.contains("destination=239.255.77.1;") == true, "\(joined)")
      let first = ports.take(10)
      try cameras.set(
        "nursery", group: RTSPServerConfiguration.Group(address: "239.255.77.3", port: 15_004, timeToLive: 0))
      #expect(try member.request("GET_PARAMETER", nil, ["Session: \(joined.session ?? "")"]).status == 454)
      let again = try member.play("RTP/AVP;multicast").setup
      #expect(again.header("Transport")?.contains("destination=239.255.77.3;") == true, "\(again)")
      try cameras.set("nursery", group: nil)
      let refused = try member.request("SETUP", nil, ["Transport: RTP/AVP;multicast"])
      #expect(refused.status == 461)
      #expect(try single.request("GET_PARAMETER", nil, ["Session: \(session)"]).status == 200)
      #expect(try neighbour.request("GET_PARAMETER", nil, ["Session: \(other)"]).status == 200)
      try ReceivedStream(first + ports.take(20)).expectDecodable()
    }
  }
#endif
