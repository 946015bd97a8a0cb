#if X264
  import Foundation
  import Media
  import Platform
  import RTP
  import Serving
  import Streaming
  import TestSupport
  import Testing

  /// The packets of a viewer, from its first one on.
  @Suite(.serialized) struct PlayTests {
    static let interleaved = "RTP/AVP/TCP;unicast;interleaved=0-1"

    @Test(arguments: [true, false])
    func `RTP-Info names the first packet, and that begins a picture`(overTCP: Bool) throws {
      let camera = try ServedCamera()
      // The second comes while the stream runs.
      for _ in 0..<2 {
        let client = try camera.client()
        let ports = try DatagramPair()
        let (setup, play) = try client.play(overTCP ? Self.interleaved : ports.transport)
        let start = try #require(play.start, "\(play)")
        let stream = try ReceivedStream(overTCP ? client.take(30) : ports.take(30))
        #expect(stream.first.sequence == start.sequence)
        #expect(stream.first.timestamp == start.timestamp)
        try stream.expectDecodable(missed: camera.pipeline.missedFrames)
        #expect(try client.request("TEARDOWN", nil, ["Session: \(setup.session ?? "")"]).status == 200)
      }
      #expect(try camera.settles(sessions: 0))
    }

    @Test(arguments: [true, false])
    func `a viewer that joins within the key-frame limit gets the last key frame again`(overTCP: Bool) throws {
      let camera = try ServedCamera()
      let first = try camera.client()
      _ = try first.play(Self.interleaved)
      #expect(first.take(10).count >= 10)
      // The second gets a new one; the third comes too soon for another.
      let early = try DatagramPair()
      let second = try camera.client()
      let begin = Instant.now()
      let last = try #require(try second.play(early.transport).play.start)
      let packets = early.take(1)
      let client = try camera.client()
      let ports = try DatagramPair()
      let start = try #require(try client.play(overTCP ? Self.interleaved : ports.transport).play.start)
      let elapsed = Instant.now() - begin
      let stream = try ReceivedStream(overTCP ? client.take(30) : ports.take(30))
      #expect(stream.first.sequence == start.sequence)
      // Where the machine was too busy for it, a new one.
      #expect(elapsed.seconds > 0.5 || start.sequence == last.sequence, "\(elapsed.seconds)")
      try stream.expectDecodable(missed: camera.pipeline.missedFrames)
      try ReceivedStream(packets + early.take(30)).expectDecodable()
    }

    @Test func `a viewer that joins after others have left gets no picture without its references`()
      throws
    {
      let camera = try ServedCamera(rests: false)
      for _ in 0..<3 {
        let ports = try DatagramPair()
        let first = try camera.client()
        let session = try #require(try first.play(ports.transport).setup.session)
        _ = ports.take(4)
        #expect(try first.request("TEARDOWN", nil, ["Session: \(session)"]).status == 200)
        // Pictures that nobody gets.
        let encoded = camera.pipeline.statistics.encoded
        #expect(eventually { camera.pipeline.statistics.encoded > encoded + 3 })
        let next = try DatagramPair()
        let second = try camera.client()
        let again = try #require(try second.play(next.transport).setup.session)
        try ReceivedStream(next.take(30)).expectDecodable()
        #expect(try second.request("TEARDOWN", nil, ["Session: \(again)"]).status == 200)
      }
    }

    @Test(arguments: [true, false])
    func `after a pause the stream goes on with a picture of its own`(overTCP: Bool) throws {
      let camera = try ServedCamera()
      let client = try camera.client()
      let ports = try DatagramPair()
      let session = try #require(try client.play(overTCP ? Self.interleaved : ports.transport).setup.session)
      for _ in 0..<4 {
        _ = overTCP ? client.take(10) : ports.take(10)
        #expect(try client.request("PAUSE", nil, ["Session: \(session)"]).status == 200)
        // What was on its way has come before the next answer.
        #expect(eventually { camera.pipeline.statistics.destinations.isEmpty })
        #expect(try client.request("OPTIONS").status == 200)
        _ = overTCP ? client.take(0) : ports.drain()
        // The send thread may have been held up in the middle of a picture, and by UDP that comes later than the answer.
        let isPaused = eventually(within: overTCP ? 0 : 30) {
          (overTCP ? client.take(1, within: 0.2) : ports.take(1, within: 0.2)).isEmpty
        }
        #expect(isPaused)
        let start = try #require(try client.request("PLAY", nil, ["Session: \(session)"]).start)
        let stream = try ReceivedStream(overTCP ? client.take(24) : ports.take(24))
        #expect(stream.first.sequence == start.sequence)
        try stream.expectDecodable(missed: camera.pipeline.missedFrames)
      }
    }

    @Test func `many plays and pauses on one connection cost no descriptors`() throws {
      let camera = try ServedCamera()
      let client = try camera.client()
      let session = "Session: \(try #require(try client.play(Self.interleaved).setup.session))"
      func cycle() throws {
        #expect(!client.take(1).isEmpty)
        #expect(try client.request("PAUSE", nil, [session]).status == 200)
        #expect(eventually { camera.pipeline.statistics.destinations.isEmpty })
        _ = client.take(0)
        #expect(try client.request("PLAY", nil, [session]).status == 200)
      }
      try cycle()
      let before = try Footprint.descriptors()
      for _ in 0..<16 { try cycle() }
      #expect(try eventually { try Footprint.descriptors() <= before + 4 }, "\(before)")
    }

    @Test(arguments: [true, false])
    func `no sequence number comes twice after a pause or a second SETUP`(overTCP: Bool) throws {
      let camera = try ServedCamera()
      let client = try camera.client()
      let ports = try DatagramPair()
      let transport = overTCP ? Self.interleaved : ports.transport
      let session = "Session: \(try #require(try client.play(transport).setup.session))"
      var numbers: Set<UInt16> = []
      func take(_ count: Int) throws {
        for packet in overTCP ? client.take(count) : ports.take(count) {
          let number = try packet.withUnsafeBytes { try RTPPacket(parsing: $0).header.sequenceNumber }
          #expect(numbers.insert(number).inserted, "\(number)")
        }
      }
      // At once too, while another key frame may not be asked for yet.
      for count in [20, 1, 1, 20] {
        try take(count)
        #expect(try client.request("PAUSE", nil, [session]).status == 200)
        #expect(eventually { camera.pipeline.statistics.destinations.isEmpty })
        if count == 20 {
          let again = try client.request("SETUP", client.url + "/trackID=0", [session, "Transport: \(transport)"])
          #expect(again.status == 200, "\(again)")
        }
        #expect(try client.request("PLAY", nil, [session]).start != nil)
      }
      try take(20)
    }

    @Test func `no packet from before a pause follows the answer to the next PLAY`() throws {
      let camera = try ServedCamera()
      let client = try camera.client()
      let session = try #require(try client.play(Self.interleaved).setup.session)
      for _ in 0..<10 {
        _ = client.take(6)
        client.send(
          (client.text("PAUSE", nil, ["Session: \(session)"]) + client.text("PLAY", nil, ["Session: \(session)"])).utf8)
        #expect(try client.reply().status == 200)
        // What came before the second answer is of before, whenever this side gets to read it.
        let answer = try client.reply()
        client.drop(before: answer)
        let start = try #require(answer.start)
        let stream = try ReceivedStream(client.take(24))
        #expect(stream.first.sequence == start.sequence)
        try stream.expectDecodable(missed: camera.pipeline.missedFrames)
      }
    }

    @Test func `media goes to the address that the session came from, whatever it asks for`() throws {
      let camera = try ServedCamera()
      let client = try camera.client()
      let ports = try DatagramPair()
      let victim = try DatagramPair("127.0.0.9", port: ports.port)
      let (setup, _) = try client.play(ports.transport + ";destination=127.0.0.9")
      #expect(setup.header("Transport")?.contains("127.0.0.9") == false)
      #expect(ports.take(30).count >= 30)
      #expect(victim.drain().isEmpty && victim.drain(control: true).isEmpty)
    }

    @Test func `interleaved packets stay on the connection that they were agreed on`() throws {
      let camera = try ServedCamera()
      let client = try camera.client()
      let setup = try client.request("SETUP", client.url + "/trackID=0", ["Transport: \(Self.interleaved)"])
      let session = try #require(setup.session)
      let other = try camera.client()
      #expect(try other.request("PLAY", nil, ["Session: \(session)"]).status == 200)
      #expect(client.take(30).count >= 30)
      #expect(other.take(1, within: 0.2).isEmpty)
      other.reset()
      #expect(client.take(30).count >= 30)
    }

    @Test func `a player that starts again on the ports of one that died is alone there`() throws {
      var isJudged = false
      for _ in 0..<5 where !isJudged { isJudged = try startAgain() }
      #expect(isJudged, "the host was held up for seconds, five times")
    }

    /// A player on the ports of one that died. Returns `false`, with nothing judged, if the host was held up for nearly
    /// as long as a silent session lives.
    private func startAgain() throws -> Bool {
      let camera = try ServedCamera { $0.sessionSeconds = 5 }
      let ports = try DatagramPair(readsAlways: true)
      let first = try camera.client()
      _ = try first.play(ports.transport)
      #expect(ports.take(10).count >= 10)
      first.reset()
      let second = try camera.client()
      var (pause, last) = (Duration.zero, Instant.now())
      func noteTime() {
        let now = Instant.now()
        (pause, last) = (max(pause, now - last), now)
      }
      let session = try #require(try second.play(ports.transport).setup.session)
      _ = ports.drain()
      _ = ports.drain(control: true)
      noteTime()
      var packets: [Data] = []
      var statuses: Set<Int> = []
      // Longer than the first one's session would live.
      for _ in 0..<22 {
        usleep(300_000)
        packets += ports.drain()
        statuses.insert(try second.request("GET_PARAMETER", nil, ["Session: \(session)"]).status)
        noteTime()
      }
      guard pause < .seconds(2) else { return false }
      let gaps = try ReceivedStream(packets).gaps
      #expect(statuses == [200] && gaps == 0, "\(statuses), \(gaps) gaps")
      #expect(PresentationTests.goodbyes(ports.drain(control: true)) == 0)
      #expect(try camera.settles(sessions: 1))
      return true
    }

    @Test func `nothing is encoded while nobody watches`() throws {
      let camera = try ServedCamera()
      func expectRest() {
        let before = camera.pipeline.statistics
        #expect(eventually { camera.pipeline.statistics.captured > before.captured + 5 })
        #expect(camera.pipeline.statistics.encoded == before.encoded)
      }
      #expect(eventually { camera.pipeline.statistics.captured > 5 })
      #expect(camera.pipeline.statistics.encoded == 0)
      let client = try camera.client()
      #expect(try client.request("DESCRIBE").body.contains("sprop-parameter-sets="))
      #expect(camera.pipeline.statistics.encoded == 0)
      _ = try client.play(Self.interleaved)
      #expect(client.take(20).count >= 20)
      client.reset()
      #expect(try camera.settles(sessions: 0))
      // One may be under way for as long as its thread stands still: the same thread skips those that follow.
      #expect(eventually { camera.pipeline.statistics.destinations.isEmpty })
      let unwatched = camera.pipeline.statistics.unwatched
      #expect(eventually { camera.pipeline.statistics.unwatched > unwatched + 5 })
      expectRest()
    }
  }
#endif
