import Media
import Platform
import RTP
import RTSP
import Testing

@Suite struct SessionTableTests {
  static let second = Int64(1_000_000_000)
  static let transports = TransportCapabilities(isMulticastServed: true)

  /// A server with a camera and a presentation of two streams, and requests on connection 1 at time 0 unless told.
  struct Server {
    var table = SessionTable(
      configuration: .init(presentations: ["/camera": 1, "/two": 2], transports: transports, timeoutSeconds: 60))
    var time = Instant.zero

    mutating func answer(
      _ text: String, session: SessionIdentifier? = nil, connection: UInt64 = 1, from client: String = "192.0.2.9"
    ) throws -> SessionTable.Answer {
      let header = session.map { "\nSession: \($0)" } ?? ""
      return try answer(try request(text + "\nCSeq: 1" + header), connection: connection, from: client)
    }

    mutating func answer(
      _ request: Request, connection: UInt64 = 1, from client: String = "192.0.2.9"
    ) throws -> SessionTable.Answer {
      let client = try #require(ConnectionAddress(client))
      return table.answer(
        request, on: .init(identifier: connection, client: client, authority: "192.0.2.1:8554"), at: time)
    }

    mutating func status(
      _ text: String, session: SessionIdentifier? = nil, connection: UInt64 = 1, from client: String = "192.0.2.9"
    ) throws -> Int {
      let answer = try answer(text, session: session, connection: connection, from: client)
      // What is refused has no effect and a reason, and the other way round.
      #expect(answer.response.status.isSuccess == (answer.refusal == nil))
      if let refusal = answer.refusal {
        #expect(answer.effect == .none)
        #expect(refusal.status == answer.response.status)
        #expect(!refusal.description.isEmpty && refusal.description.count < 250)
      }
      return answer.response.status.rawValue
    }

    mutating func setUp(
      _ path: String = "/camera/trackID=0", transport: String = "RTP/AVP;unicast;client_port=5000-5001",
      connection: UInt64 = 1, from client: String = "192.0.2.9", session: SessionIdentifier? = nil
    ) throws -> SessionIdentifier {
      let answer = try answer(
        "SETUP rtsp://h\(path) RTSP/1.0\nTransport: \(transport)", session: session, connection: connection,
        from: client)
      guard case .setup(let identifier, _, _) = answer.effect else { throw try #require(answer.refusal) }
      #expect(answer.response.headers["Session"] == "\(identifier);timeout=60")
      return identifier
    }
  }

  /// Everything that a player sent is carried out, with its session's name changed to ours.
  @Test(arguments: Conversations.players)
  func `players get through to PLAY and TEARDOWN`(name: String) throws {
    let bytes = try Conversations.recording(name)
    var server = Server()
    var session: SessionIdentifier?
    var effects: [String] = []
    for case .request(var request) in try messages(bytes) {
      if request.headers["Session"] != nil { request.headers["Session"] = session.map { "\($0)" } }
      let answer = try server.answer(request)
      #expect(answer.response.status == .ok)
      #expect(answer.response.sequenceNumber == request.headers["CSeq"])
      switch answer.effect {
      case .none: effects.append("\(request.method)")
      case .describe(let path, let base, let profile):
        #expect(path == "/camera")
        #expect(base.hasSuffix("/camera/") && !base.contains("@"))
        #expect(profile.takesFeedback == name.hasPrefix("gstreamer"))
        effects.append("describe")
      case .setup(let identifier, track: 0, let transport):
        session = identifier
        switch transport.delivery {
        case .udp: #expect(!name.contains("tcp") && !name.contains("user"))
        case .interleaved: #expect(name.contains("tcp") || name.contains("user"))
        case .multicast: #expect(name.contains("multicast"))
        }
        #expect(transport.profile == (name == "gstreamer-avpf" ? .avpf : .avp))
        effects.append("setup")
      case .play(let identifier, let urls):
        #expect(identifier == session)
        // The URL that the player set up, as ffmpeg compares them.
        let port = request.uri.hasPrefix("rtsp://127") ? request.uri.split(separator: "/")[1] : "192.0.2.1:8554"
        #expect(urls == [0: "rtsp://\(port)/camera/trackID=0"])
        #expect(answer.response.headers["Range"] == "npt=now-")
        effects.append("play")
      case .teardown(let identifier):
        #expect(identifier == session)
        effects.append("teardown")
      default: effects.append("\(answer.effect)")
      }
    }
    #expect(effects.starts(with: ["OPTIONS", "describe", "setup", "play"]))
    let isOver = effects.last == "teardown"
    #expect(server.table.sessions.isEmpty == isOver)
  }

  /// It takes any server for SAT>IP, plays a path of that, and is told that there is none.
  @Test func `VLC without live555 is refused`() throws {
    var server = Server()
    var session: SessionIdentifier?
    var codes: [Int] = []
    for case .request(var request) in try messages(try Conversations.recording("vlc-satip")) {
      if request.headers["Session"] != nil { request.headers["Session"] = session.map { "\($0)" } }
      let answer = try server.answer(request)
      if case .setup(let identifier, _, _) = answer.effect { session = identifier }
      codes.append(answer.response.status.rawValue)
    }
    #expect(codes == [200, 404, 404])
  }

  @Test func `requests before a session`() throws {
    var server = Server()
    let options = try server.answer("OPTIONS * RTSP/1.0").response
    #expect(
      String(decoding: options.bytes, as: UTF8.self) == """
        RTSP/1.0 200 OK\r
        CSeq: 1\r
        Public: OPTIONS, DESCRIBE, SETUP, PLAY, PAUSE, TEARDOWN, GET_PARAMETER, SET_PARAMETER\r
        \r\n
        """)
    // Where from a client without a URL's host looks for its tracks.
    #expect(
      try server.answer("DESCRIBE /camera RTSP/1.0").effect
        == .describe(
          path: "/camera", contentBase: "rtsp://192.0.2.1:8554/camera/", for: ClientProfile(userAgent: nil, query: nil))
    )
    #expect(
      try server.answer("DESCRIBE RTSPS://u:p@H:1/camera/?q RTSP/1.0").effect
        == .describe(
          path: "/camera", contentBase: "rtsps://H:1/camera/", for: ClientProfile(userAgent: nil, query: nil)))
    for (text, status) in [
      ("OPTIONS rtsp://h/nowhere RTSP/1.0", 200), ("GET_PARAMETER * RTSP/1.0", 200),
      ("SET_PARAMETER rtsp://h/camera RTSP/1.0", 200), ("GET_PARAMETER rtsp://h/nowhere RTSP/1.0", 404),
      ("DESCRIBE rtsp://h/nowhere RTSP/1.0", 404), ("DESCRIBE rtsp://h/ RTSP/1.0", 404),
      ("DESCRIBE rtsp://h/camera/x RTSP/1.0", 404), ("DESCRIBE rtsp://h/camera/trackID=1 RTSP/1.0", 404),
      ("DESCRIBE * RTSP/1.0", 400), ("DESCRIBE http://h/camera RTSP/1.0", 400),
      ("DESCRIBE rtsp://h/camera RTSP/2.0", 505), ("DESCRIBE rtsp://h/camera RTSP/1.1", 505),
      ("ANNOUNCE rtsp://h/camera RTSP/1.0", 405), ("RECORD rtsp://h/camera RTSP/1.0", 405),
      ("REDIRECT rtsp://h/camera RTSP/1.0", 405), ("options * RTSP/1.0", 501), ("PLAY_NOTIFY * RTSP/1.0", 501),
      ("DESCRIBE rtsp://h/camera RTSP/1.0\nAccept: text/plain, application/rtsl", 406),
      ("DESCRIBE rtsp://h/camera RTSP/1.0\nAccept: text/plain\nAccept: Application/SDP;level=1", 200),
      ("DESCRIBE rtsp://h/camera RTSP/1.0\nAccept: */*;q=0.1", 200),
      ("DESCRIBE rtsp://h/camera RTSP/1.0\nRequire: implicit-play", 551),
      ("PLAY rtsp://h/camera RTSP/1.0", 454), ("PAUSE rtsp://h/camera RTSP/1.0", 454),
      ("TEARDOWN rtsp://h/camera RTSP/1.0", 454), ("TEARDOWN rtsp://h/camera RTSP/1.0\nSession: 12345678", 454),
      ("OPTIONS * RTSP/1.0\nSession: ", 454), ("GET_PARAMETER * RTSP/1.0\nSession: 1", 454),
      ("SETUP rtsp://h/camera RTSP/1.0", 400), ("SETUP rtsp://h/camera RTSP/1.0\nTransport: RTP/SAVP/TCP", 461),
      ("SETUP rtsp://h/camera RTSP/1.0\nTransport: RTP/AVP/TCP;interleaved=x", 400),
      ("SETUP rtsp://h/camera/trackID=1 RTSP/1.0\nTransport: RTP/AVP/TCP", 404),
      ("SETUP rtsp://h/two RTSP/1.0\nTransport: RTP/AVP/TCP", 459),
      ("SETUP rtsp://h/camera RTSP/1.0\nTransport: RTP/AVP/TCP\nSession: 1", 454),
    ] {
      #expect(try server.status(text) == status, "\(text)")
    }
    #expect(server.table.sessions.isEmpty)
    #expect(try server.answer("RECORD * RTSP/1.0").response.headers["Allow"]?.hasPrefix("OPTIONS, DESCRIBE") == true)
  }

  /// Section 12.32.
  @Test func `a required feature that is missing is named`() throws {
    var server = Server()
    let response = try server.answer(
      "SETUP rtsp://h/camera RTSP/1.0\nRequire: funky-feature, other\nProxy-Require: third"
    ).response
    #expect(response.status == .optionNotSupported)
    #expect(response.headers["Unsupported"] == "funky-feature, other, third")
  }

  @Test func `a request without a CSeq is answered without`() throws {
    var server = Server()
    for text in ["OPTIONS * RTSP/1.0", "OPTIONS * RTSP/1.0\nCSeq: x", "OPTIONS * RTSP/1.0\nCSeq: 1\nCSeq: 2"] {
      let answer = try server.answer(try request(text))
      #expect(answer.response.status == .badRequest)
      #expect(String(decoding: answer.response.bytes, as: UTF8.self) == "RTSP/1.0 400 Bad Request\r\n\r\n")
    }
  }

  @Test func `a session from SETUP to TEARDOWN`() throws {
    var server = Server()
    let session = try server.setUp()
    #expect(server.table[session]?.state == .ready)
    #expect(try server.status("PAUSE rtsp://h/camera RTSP/1.0", session: session) == 455)
    #expect(try server.status("PLAY rtsp://h/two RTSP/1.0", session: session) == 454)
    #expect(try server.status("PLAY rtsp://h/nowhere RTSP/1.0", session: session) == 404)
    #expect(try server.status("PLAY * RTSP/1.0", session: session) == 400)
    #expect(try server.status("PLAY rtsp://h/camera RTSP/1.0\nRange: npt=5-0", session: session) == 457)
    #expect(try server.status("PLAY rtsp://h/camera RTSP/1.0\nRange: clock=19961108T143720Z-", session: session) == 457)
    #expect(try server.status("PLAY rtsp://h/camera RTSP/1.0\nRange: bytes=0-", session: session) == 501)
    #expect(server.table[session]?.state == .ready)

    var play = try server.answer(
      "PLAY rtsp://h/camera RTSP/1.0\nRange: npt=0.000-\nScale: 2.5", session: session)
    #expect(play.effect == .play(session, urls: [0: "rtsp://h/camera/trackID=0"]))
    play.response.setRTPInformation([
      RTPInformation(url: "rtsp://h/camera/trackID=0", sequenceNumber: 45102, timestamp: 12_345_678)
    ])
    #expect(
      String(decoding: play.response.bytes, as: UTF8.self) == """
        RTSP/1.0 200 OK\r
        CSeq: 1\r
        Session: \(session);timeout=60\r
        Range: npt=now-\r
        Scale: 1.0\r
        RTP-Info: url=rtsp://h/camera/trackID=0;seq=45102;rtptime=12345678\r
        \r\n
        """)
    #expect(server.table[session]?.state == .playing)
    let setup = try server.answer(
      "SETUP rtsp://h/camera RTSP/1.0\nTransport: RTP/AVP/TCP", session: session)
    #expect(setup.response.status == .methodNotValidInThisState)
    #expect(
      setup.response.headers["Allow"] == "OPTIONS, DESCRIBE, PLAY, PAUSE, TEARDOWN, GET_PARAMETER, SET_PARAMETER")
    #expect(setup.response.headers["Session"] == "\(session)")

    // Some clients name the one track, or the session with its parameters.
    #expect(
      try server.answer("PLAY rtsp://h/camera/trackID=0 RTSP/1.0\nSession: \(session);timeout=60").effect
        == .play(session, urls: [0: "rtsp://h/camera/trackID=0"]))
    #expect(try server.answer("PAUSE rtsp://h/camera RTSP/1.0", session: session).effect == .pause(session))
    #expect(server.table[session]?.state == .ready)
    // Another way, while it does not play: the same session.
    #expect(try server.setUp(transport: "RTP/AVP/TCP", session: session) == session)
    #expect(server.table[session]?.isInterleaved == true)
    #expect(server.table.sessions.count == 1)
    let teardown = try server.answer("TEARDOWN rtsp://h/camera/ RTSP/1.0", session: session)
    #expect(teardown.effect == .teardown(session))
    #expect(teardown.response.headers["Session"] == nil)
    #expect(try server.status("PLAY rtsp://h/camera RTSP/1.0", session: session) == 454)
  }

  /// Section 10.4, 10.7, 12.33.
  @Test func `two streams are set up one by one, and play together`() throws {
    var server = Server()
    let session = try server.setUp("/two/trackID=0", transport: "RTP/AVP/TCP;interleaved=0-1")
    #expect(try server.status("PLAY rtsp://h/two/trackID=1 RTSP/1.0", session: session) == 404)
    #expect(
      try server.status("SETUP rtsp://h/camera RTSP/1.0\nTransport: RTP/AVP/TCP", session: session) == 459)
    // The channels of the first are taken.
    let second = try server.answer(
      "SETUP rtsp://h/two/trackID=1 RTSP/1.0\nTransport: RTP/AVP/TCP;interleaved=1-2", session: session)
    guard case .setup(session, track: 1, let transport) = second.effect else { throw try #require(second.refusal) }
    #expect(transport.delivery == TransportTests.tcp(2, 3))
    #expect(try server.status("PLAY rtsp://h/two/trackID=1 RTSP/1.0", session: session) == 460)
    #expect(
      try server.answer("PLAY rtsp://h/two RTSP/1.0", session: session).effect
        == .play(session, urls: [0: "rtsp://h/two/trackID=0", 1: "rtsp://h/two/trackID=1"]))
    #expect(try server.status("PAUSE rtsp://h/two/trackID=0 RTSP/1.0", session: session) == 460)
    #expect(
      try server.answer("TEARDOWN rtsp://h/two/trackID=0 RTSP/1.0", session: session).effect
        == .release(session, track: 0))
    #expect(
      try server.answer("TEARDOWN rtsp://h/two/trackID=1 RTSP/1.0", session: session).effect == .teardown(session))
  }

  @Test func `parameters there are none`() throws {
    var server = Server()
    let session = try server.setUp()
    for method in ["GET_PARAMETER", "SET_PARAMETER"] {
      let text =
        "\(method) rtsp://h/camera RTSP/1.0\r\nCSeq: 9\r\nSession: \(session)\r\nContent-Length: 8\r\n\r\njitter\r\n"
      #expect(try server.answer(try #require(try requests(text).first)).response.status == .parameterNotUnderstood)
    }
  }

  @Test func `a session ends without a sign of life`() throws {
    var server = Server()
    let session = try server.setUp()
    func at(_ seconds: Int64) -> Instant { Instant(nanoseconds: seconds * Self.second) }
    #expect(server.table.nextDeadline == at(60))
    for (start, request) in [
      (59, "GET_PARAMETER rtsp://h/camera RTSP/1.0"), (118, "OPTIONS * RTSP/1.0"),
      (177, "SET_PARAMETER rtsp://h/camera RTSP/1.0"), (236, "PAUSE rtsp://h/camera RTSP/1.0"),
    ] as [(Int64, String)] {
      server.time = at(start)
      #expect(server.table.expire(at: server.time).isEmpty)
      _ = try server.status(request, session: session)
      #expect(server.table.nextDeadline == at(start + 60))
    }
    server.table.keepAlive(session, at: at(290))
    #expect(server.table.expire(at: at(349)).isEmpty)
    // Also before anybody has looked for those that are over.
    server.time = at(350)
    #expect(try server.status("PLAY rtsp://h/camera RTSP/1.0", session: session) == 454)
    #expect(server.table.expire(at: at(350)) == [session])
    #expect(server.table.nextDeadline == nil)
    server.table.keepAlive(session, at: at(351))
    #expect(server.table.sessions.isEmpty)
  }

  @Test func `a session is its client's, on whatever connection`() throws {
    var server = Server()
    let session = try server.setUp()
    #expect(try server.status("PLAY rtsp://h/camera RTSP/1.0", session: session, from: "192.0.2.10") == 454)
    #expect(try server.status("TEARDOWN rtsp://h/camera RTSP/1.0", session: session, from: "192.0.2.10") == 454)
    #expect(try server.status("PLAY rtsp://h/camera RTSP/1.0", session: session, connection: 2) == 200)
    #expect(server.table.connectionClosed(1).isEmpty)
    // Interleaved data cannot go over a connection that the session is not on.
    #expect(try server.status("PAUSE rtsp://h/camera RTSP/1.0", session: session, connection: 2) == 200)
    let interleaved = "SETUP rtsp://h/camera RTSP/1.0\nTransport: RTP/AVP/TCP"
    #expect(try server.status(interleaved, session: session, connection: 2) == 454)
    #expect(server.table[session] != nil)
  }

  @Test func `an interleaved session ends with its connection`() throws {
    var server = Server()
    let first = try server.setUp(transport: "RTP/AVP/TCP;interleaved=0-1", connection: 7)
    let second = try server.setUp(transport: "RTP/AVP/TCP;interleaved=0-1", connection: 7)
    let other = try server.setUp(transport: "RTP/AVP/TCP;interleaved=0-1", connection: 8)
    #expect(first != second)
    #expect(server.table[second]?.transports[0]?.delivery == TransportTests.tcp(2, 3))
    #expect(server.table[other]?.transports[0]?.delivery == TransportTests.tcp(0, 1))
    for (channel, session, isRTCP) in [(0, first, false), (1, first, true), (2, second, false), (3, second, true)] {
      let stream = try #require(server.table.stream(onChannel: UInt8(channel), of: 7))
      #expect(stream == (session, 0, isRTCP))
    }
    #expect(server.table.stream(onChannel: 4, of: 7) == nil)
    #expect(server.table.stream(onChannel: 1, of: 8)?.session == other)
    #expect(server.table.stream(onChannel: 1, of: 9) == nil)
    #expect(Set(server.table.connectionClosed(7)) == [first, second])
    let wasThere = [server.table.end(other), server.table.end(other)]
    #expect(wasThere == [true, false])
  }

  @Test func `there are no more sessions than allowed`() throws {
    var server = Server()
    server.table.configuration.maximumSessions = 3
    server.table.configuration.maximumSessionsPerAddress = 2
    let setup = "SETUP rtsp://h/camera RTSP/1.0\nTransport: RTP/AVP/TCP"
    let first = try server.setUp()
    _ = try server.setUp()
    #expect(try server.answer(setup).refusal == .sessionsPerAddress(limit: 2))
    _ = try server.setUp(from: "2001:db8::1")
    #expect(try server.answer(setup, from: "192.0.2.10").refusal == .sessions(limit: 3))
    let refused = try server.answer(setup, from: "192.0.2.10").response
    #expect(refused.status == .serviceUnavailable)
    #expect(String(decoding: refused.body, as: UTF8.self) == "all 3 sessions are in use; try again later\r\n")
    // A session that is there may be set up again.
    #expect(try server.setUp(session: first) == first)
    server.table.end(first)
    _ = try server.setUp(from: "192.0.2.10")
  }

  /// RFC 2326 section 11.3.10: a session is of one presentation, and each of those is sent in its own ways.
  @Test func `presentations are apart`() throws {
    var server = Server()
    server.table.configuration.presentations["/porch"] = 1
    server.table.configuration.transportsByPath["/porch"] = TransportCapabilities()
    let multicast = "RTP/AVP;multicast,RTP/AVP;unicast;client_port=5000-5001"
    for (path, delivery) in [
      ("/camera", SelectedTransport.Delivery.multicast), ("/porch", .udp(PortPair(rtp: 5000, rtcp: 5001))),
    ] {
      let session = try server.setUp("\(path)/trackID=0", transport: multicast)
      #expect(server.table[session]?.transports[0]?.delivery == delivery)
      let other = path == "/porch" ? "/camera" : "/porch"
      for (request, status) in [
        ("SETUP rtsp://h\(other) RTSP/1.0\nTransport: RTP/AVP/TCP", 459), ("PLAY rtsp://h\(other) RTSP/1.0", 454),
        ("TEARDOWN rtsp://h\(other)/ RTSP/1.0", 454), ("PLAY rtsp://h\(path)/ RTSP/1.0", 200),
        ("GET_PARAMETER * RTSP/1.0", 200), ("PLAY * RTSP/1.0", 400), ("TEARDOWN rtsp://h\(path) RTSP/1.0", 200),
      ] {
        #expect(try server.status(request, session: session) == status, "\(request)")
      }
    }
  }

  @Test func `a session outlives its path`() throws {
    var server = Server()
    let session = try server.setUp()
    server.table.configuration.presentations = ["/porch": 1]
    #expect(try server.status("DESCRIBE rtsp://h/camera RTSP/1.0") == 404)
    #expect(try server.status("PLAY rtsp://h/camera RTSP/1.0", session: session) == 200)
    #expect(try server.status("SETUP rtsp://h/camera RTSP/1.0\nTransport: RTP/AVP/TCP") == 404)
    #expect(try server.status("TEARDOWN rtsp://h/camera RTSP/1.0", session: session) == 200)
    #expect(try server.status("TEARDOWN rtsp://h/camera RTSP/1.0", session: session) == 454)
  }

  @Test func `session names are random and of one form`() throws {
    let names = Set((0..<1000).map { _ in SessionIdentifier() })
    #expect(names.count == 1000)
    let name = try #require(names.first)
    #expect(SessionIdentifier(header: " \(name) ;timeout=60") == name)
    for text in ["", "1", "\(name)0", "\(name.description.dropLast())é", "\(name.description.dropLast())\n"] {
      #expect(SessionIdentifier(header: text) == nil)
    }
  }
}
