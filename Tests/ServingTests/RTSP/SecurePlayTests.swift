#if X264
  import Foundation
  import Media
  import Platform
  import RTP
  import Serving
  import SRTP
  import Streaming
  import TestSupport
  import Testing

  /// SRTP by RTSP, to clients that do as they like.
  @Suite(.serialized) struct SecurePlayTests {
    private func transport(_ ports: DatagramPair, profile: String = "RTP/SAVPF") -> String {
      ports.transport.replacingOccurrences(of: "RTP/AVP", with: profile)
    }

    private func play(
      _ client: RTSPClient, _ transport: String, _ headers: [String] = []
    ) throws -> (described: MIKEYMessage, setup: RTSPClient.Reply, play: RTSPClient.Reply) {
      let description = try client.request("DESCRIBE")
      #expect(DescriptionLines(description.body)["m"] == ["video 0 RTP/SAVP 96"])
      #expect(!description.body.contains("a=crypto"))
      let key = try description.describedKey()
      let (setup, play) = try client.play(transport, headers)
      return (key, setup, play)
    }

    @Test(arguments: SRTPSuite.allCases, [true, false])
    func `a viewer opens the stream with the key of its DESCRIBE`(suite: SRTPSuite, overTCP: Bool) throws {
      let secure = try SecureCamera {
        $0.suite = suite
        $0.requiresEncryption = true
      }
      let ports = try DatagramPair()
      let client = try secure.client()
      let way = overTCP ? "RTP/SAVP/TCP;unicast;interleaved=0-1" : transport(ports)
      let (key, setup, play) = try play(client, way)
      #expect(key.key.suite == suite)
      #expect(try setup.setupKey() == key)
      let ssrc = String(key.streams[0].ssrc, radix: 16, uppercase: true)
      #expect(setup.header("Transport")?.contains(ssrc) == true, "\(setup)")
      let receiver = try SecureReceiver(key)
      let packets = overTCP ? client.take(30) : ports.take(30)
      let opened = packets.compactMap(receiver.open)
      #expect(packets.count >= 30 && opened.count == packets.count)
      let stream = try ReceivedStream(opened)
      #expect(stream.first.sequence == play.start?.sequence)
      try stream.expectDecodable(missed: secure.camera.pipeline.missedFrames)
      // None of the picture's bytes are in what went over the network.
      let wire = packets.reduce(into: Data()) { $0 += $1 }
      for packet in opened where packet.count >= 28 {
        #expect(wire.range(of: packet[packet.startIndex + 12..<packet.startIndex + 28]) == nil, "bytes in the clear")
      }
      #expect(secure.camera.pipeline.statistics.destinations[0].isProtected)
    }

    @Test func `each viewer has a key of its own, which opens nobody else's packets`() throws {
      let secure = try SecureCamera()
      let (first, second) = (try DatagramPair(), try DatagramPair())
      let clients = try (secure.client(), secure.client())
      let one = try play(clients.0, transport(first)).described
      let other = try play(clients.1, transport(second)).described
      #expect(one.key != other.key && one.streams[0].ssrc != other.streams[0].ssrc)
      let packets = (first.take(20), second.take(20))
      let receivers = try (SecureReceiver(one), SecureReceiver(MIKEYMessage(key: one.key, streams: other.streams)))
      #expect(packets.0.allSatisfy { receivers.0.open($0) != nil } && packets.0.count >= 20)
      #expect(packets.1.allSatisfy { receivers.1.open($0) == nil } && packets.1.count >= 20)
      #expect(secure.camera.pipeline.statistics.streams == 2)
      // A viewer of the same connection without another DESCRIBE gets its key with SETUP.
      let third = try DatagramPair()
      let again = try clients.0.play(transport(third)).setup.setupKey()
      #expect(again.key != one.key)
      let receiver = try SecureReceiver(again)
      #expect(third.take(20).allSatisfy { receiver.open($0) != nil })
    }

    @Test func `a viewer that pauses goes on in the same stream, and no number comes twice`() throws {
      let secure = try SecureCamera()
      let ports = try DatagramPair()
      let client = try secure.client()
      let (key, setup, _) = try play(client, transport(ports))
      let receiver = try SecureReceiver(key)
      var numbers: [UInt16] = []
      let session = "Session: \(setup.session ?? "")"
      // At once too, while another key frame may not be asked for yet.
      for count in [20, 1, 1, 20] {
        // libsrtp2 refuses what comes twice.
        for packet in ports.take(count) { try #require(receiver.open(packet) != nil) }
        #expect(try client.request("PAUSE", nil, [session]).status == 200)
        #expect(eventually { secure.camera.pipeline.statistics.destinations.isEmpty })
        for packet in ports.drain() { try #require(receiver.open(packet) != nil) }
        let play = try client.request("PLAY", nil, [session])
        numbers.append(try #require(play.start?.sequence))
      }
      #expect(numbers == numbers.sorted())
      #expect(try client.request("TEARDOWN", nil, [session]).status == 200)
    }

    @Test func `streams of viewers that are gone are let go`() throws {
      let secure = try SecureCamera()
      let pipeline = secure.camera.pipeline
      for number in 0..<12 {
        let ports = try DatagramPair()
        let client = try secure.client()
        let session = try play(client, transport(ports)).setup.session ?? ""
        #expect(ports.take(3).count >= 3)
        #expect(pipeline.statistics.streams == 1)
        // By TEARDOWN, and by vanishing after PAUSE with another SETUP in between.
        if number.isMultiple(of: 3) {
          #expect(try client.request("PAUSE", nil, ["Session: \(session)"]).status == 200)
          _ = try client.request("DESCRIBE")
          let again = try client.request(
            "SETUP", client.url + "/trackID=0", ["Session: \(session)", "Transport: \(transport(ports))"])
          #expect(again.status == 200)
        }
        #expect(try client.request("TEARDOWN", nil, ["Session: \(session)"]).status == 200)
        #expect(eventually { pipeline.statistics.streams == 0 }, "\(number)")
      }
    }

    @Test func `without TLS there is no key, and no SRTP`() throws {
      let secure = try SecureCamera()
      let client = try secure.plainClient()
      let description = try client.request("DESCRIBE").body
      #expect(!description.contains("key-mgmt") && DescriptionLines(description)["m"] == ["video 0 RTP/AVP 96"])
      let ports = try DatagramPair()
      for way in [transport(ports), transport(ports, profile: "RTP/SAVP"), "RTP/SAVP/TCP;unicast;interleaved=0-1"] {
        let reply = try client.request("SETUP", client.url + "/trackID=0", ["Transport: \(way)"])
        #expect(reply.status == 461 && reply.header("KeyMgmt") == nil, "\(reply)")
      }
      #expect(try client.play("RTP/AVP/TCP;unicast;interleaved=0-1").play.status == 200)
    }

    @Test func `without SRTP, rtsps works as before`() throws {
      let secure = try SecureCamera { $0.suite = nil }
      let client = try secure.client()
      #expect(try DescriptionLines(client.request("DESCRIBE").body)["m"] == ["video 0 RTP/AVP 96"])
      let ports = try DatagramPair()
      let refused = try client.request("SETUP", client.url + "/trackID=0", ["Transport: \(transport(ports))"])
      #expect(refused.status == 461)
      _ = try client.play("RTP/AVP/TCP;unicast;interleaved=0-1")
      try ReceivedStream(client.take(20)).expectDecodable(missed: secure.camera.pipeline.missedFrames)
    }

    @Test func `players that ask for RTP_AVP get it within the connection`() throws {
      let secure = try SecureCamera { $0.requiresEncryption = true }
      let client = try secure.client()
      _ = try client.request("DESCRIBE")
      let ports = try DatagramPair()
      let refused = try client.request("SETUP", client.url + "/trackID=0", ["Transport: \(ports.transport)"])
      #expect(refused.status == 461)
      _ = try client.play("RTP/AVP/TCP;unicast;interleaved=0-1")
      try ReceivedStream(client.take(20)).expectDecodable(missed: secure.camera.pipeline.missedFrames)
    }

    @Test(arguments: [
      ("prot=mikey;data=\"AQAF\"", 400), ("nonsense", 400), ("prot=sdes;data=\"x\"", 400),
      ("prot=mikey;data=\"%%\"", 400),
      // By certificate.
      ("prot=mikey;data=\"AQIFABI0VngAAA==\"", 461),
    ])
    func `a key of the viewer's that cannot be used is refused, and the session with it`(
      field: String, status: Int
    ) throws {
      let secure = try SecureCamera()
      let client = try secure.client()
      _ = try client.request("DESCRIBE")
      let ports = try DatagramPair()
      let reply = try client.request(
        "SETUP", client.url + "/trackID=0", ["Transport: \(transport(ports))", "KeyMgmt: \(field)"])
      #expect(reply.status == status, "\(reply)")
      #expect(try secure.camera.server.statistics().sessions == 0)
      // The key of DESCRIBE is still there for the next attempt.
      _ = try client.play(transport(ports))
      #expect(ports.take(5).count >= 5)
    }

    @Test func `a viewer's RTCP with its own key is accepted, and with another key refused`() throws {
      let secure = try SecureCamera()
      let client = try secure.client()
      let ports = try DatagramPair()
      let key = SRTPKey(random: .aes128CounterHMAC80)
      var generator = SystemRandomNumberGenerator()
      let text = MIKEYMessage(key: key, streams: [.init(ssrc: 0xabcd)]).text(
        at: NTPTimestamp(rawValue: 1), using: &generator)
      let played = try play(client, transport(ports), ["KeyMgmt: prot=mikey;uri=\"\(client.url)\";data=\"\(text)\""])
      let port = try #require(played.setup.serverControlPort)
      let source = played.described.streams[0].ssrc
      let word = (0..<4).map { UInt8(truncatingIfNeeded: source >> (24 - 8 * $0)) }
      let report: [UInt8] = [0x80, 201, 0, 1, 0, 0, 0xab, 0xcd, 0x81, 206, 0, 2, 0, 0, 0xab, 0xcd] + word
      func protected(by key: SRTPKey) throws -> [UInt8] {
        var memory = report + [UInt8](repeating: 0, count: PacketProtector.controlRoom)
        let protector = try PacketProtector(key)
        let count = try memory.withUnsafeMutableBytes { try protector.protectControl($0, count: report.count) }
        return Array(memory[..<count])
      }
      let pipeline = secure.camera.pipeline
      try ports.send(protected(by: played.described.key), to: port)
      #expect(eventually { pipeline.statistics.destinations.first?.refused.forged == 1 })
      #expect(pipeline.statistics.destinations.first?.lastHeard == nil)
      try ports.send(protected(by: key), to: port)
      #expect(eventually { pipeline.statistics.destinations.first?.feedback.pictureLosses == 1 })
    }
  }
#endif
