import Foundation
import Media
import Platform
import RTP
import RTSP
import Receiving
import SRTP
import TestSupport
import Testing

/// The messages that a client reads and writes, without a network.
@Suite struct MessageTests {
  @Test(
    arguments: [
      ("rtsp://host/path", false, "host", 554, "/path", nil, nil, "rtsp://host/path"),
      ("RTSP://Host:8554", false, "Host", 8554, "/", nil, nil, "rtsp://Host:8554/"),
      ("rtsps://[2001:db8::1]:322/a?b=c", true, "2001:db8::1", 322, "/a?b=c", nil, nil, "rtsps://[2001:db8::1]/a?b=c"),
      ("rtsp://al%40ice:p%3A%25@h/x", false, "h", 554, "/x", "al@ice", "p:%", "rtsp://h/x"),
      ("rtsp://u@h", false, "h", 554, "/", "u", "", "rtsp://h/"),
    ] as [(String, Bool, String, UInt16, String, String?, String?, String)])
  func `URLs are read, and are sent without the password`(
    text: String, isEncrypted: Bool, host: String, port: UInt16, path: String, user: String?, password: String?,
    sent: String
  ) throws {
    let url = try StreamURL(text)
    #expect(url.isEncrypted == isEncrypted && url.host == host && url.port == port && url.path == path)
    #expect(url.user == user && url.password == password)
    #expect("\(url)" == sent)
  }

  @Test(
    arguments: [
      "", "http://h/", "rtsp://", "rtsp:///x", "rtsp://h:0/", "rtsp://h:65536/", "rtsp://h:x/", "rtsp://2001:db8::1/",
      "rtsp://[::1/", "rtsp://[h]/", "rtsp://a%zz@h/", "rtsp://h/\r\nX: y", "rtsp://h/ö",
      "rtsp://" + String(repeating: "a", count: 3000),
    ])
  func `what is no URL is refused`(text: String) {
    #expect(throws: ReceiverError.self) { try StreamURL(text) }
  }

  @Test func `digests are those of RFC 7616`() throws {
    let fields = ["MD5", "SHA-256"].map { algorithm in
      "Digest realm=\"http-auth@example.org\", qop=\"auth, auth-int\", algorithm=\(algorithm), "
        + "nonce=\"7ypf/xlj9XXwfDPEoM4URrv/xwf94BcCAzFZH4GiTo0v\", opaque=\"FQhe/qaU925kfnzjCev0ciny7QMkPqMAFRtzCUYo5tdS\""
    }
    for (offered, response) in [
      (fields, "753927fa0e85d155564e2e272a28d1802ca10daf4496794697cf8db5856cb6c1"),
      ([fields[0]], "8ca523f5e9506fed4657c9700eebdbec"),
    ] {
      let challenge = try #require(DigestChallenge(choosingFrom: ["Basic realm=\"x\""] + offered))
      let value = challenge.authorization(
        user: "Mufasa", password: "Circle of Life", method: "GET", uri: "/dir/index.html", count: 1,
        clientNonce: "f2/wE4q74E6zIJEtWaHKaf5wv/H5QzzpXusqGemxURZJ")
      #expect(value.contains("response=\"\(response)\""))
      #expect(value.contains("nc=00000001") && value.contains("qop=auth"))
    }
  }

  @Test func `an old server's digest has neither quality nor algorithm`() throws {
    // RFC 2069's own example has a mistake; this value is computed by its formula with md5sum.
    let challenge = try #require(DigestChallenge(choosingFrom: ["Digest realm=\"r\", nonce=\"n\""]))
    let value = challenge.authorization(
      user: "u", password: "p", method: "DESCRIBE", uri: "rtsp://h/", count: 1, clientNonce: "c")
    func md5(_ text: String) throws -> String {
      let directory = try TemporaryDirectory()
      let result = try Subprocess.run(["sh", "-c", "printf %s '\(text)' | md5sum"], in: directory)
      return String(result.outputText.prefix(32))
    }
    let expected = try md5("\(md5("u:r:p")):n:\(md5("DESCRIBE:rtsp://h/"))")
    #expect(value.contains("response=\"\(expected)\"") && !value.contains("qop"))
  }

  @Test(
    arguments: [
      "Basic realm=\"x\"", "Digest realm=\"x\"", "Digest nonce=\"x\"",
      "Digest realm=\"a\", nonce=\"b\", algorithm=SHA-512",
      "Digest realm=\"a\", nonce=\"b\", qop=\"auth-int\"",
      "Digest realm=\"a\", nonce=\"" + String(repeating: "b", count: 2000) + "\"",
      "Digest realm=\"a\u{7}\", nonce=\"b\"", "",
    ])
  func `other challenges are not answered`(field: String) {
    #expect(DigestChallenge(choosingFrom: [field]) == nil)
  }

  private static func read(_ bytes: [UInt8], chunk: Int) throws -> (messages: [ServerMessage], data: [[UInt8]]) {
    var parser = ServerMessageParser()
    var messages: [ServerMessage] = []
    var data: [[UInt8]] = []
    var position = 0
    while position < bytes.count {
      let end = min(bytes.count, position + chunk)
      try bytes[position..<end].withUnsafeBytes { part in
        try parser.take(part, data: { data.append([$0] + $1) }, message: { messages.append($0) })
      }
      position = end
    }
    return (messages, data)
  }

  @Test func `messages and data are read however they are cut`() throws {
    let body = String(repeating: "x", count: 300)
    let bytes =
      Answers.response("200 OK", to: "CSeq: 7", ["Public: A", "public: B"], body: body) + [
        0x24, 1, 0, 3, 9, 0x0a, 0x0a,
      ]
      + Array("\r\nREDIRECT rtsp://h/ RTSP/1.0\nCSeq: 3\n\n".utf8) + [0x24, 0, 0, 0]
      + Array("RTSP/1.0 404 Not Found\r\nCSeq: 8\r\n\r\n".utf8)
    let whole = try Self.read(bytes, chunk: bytes.count)
    #expect(whole.messages.count == 3 && whole.data == [[1, 9, 0x0a, 0x0a], [0]])
    for chunk in 1...40 {
      let found = try Self.read(bytes, chunk: chunk)
      #expect(found.messages == whole.messages && found.data == whole.data)
    }
    guard case .response(let response) = whole.messages[0] else {
      Issue.record("no response")
      return
    }
    #expect(response.status == 200 && response.reason == "OK" && response.body == Array(body.utf8))
    #expect(response.headers.values(of: "PUBLIC") == ["A", "B"])
    #expect(whole.messages[1] == .request(.redirect, sequenceNumber: "3"))
  }

  @Test(
    arguments: [
      "HTTP/1.1 200 OK\r\n\r\n", "RTSP/1.0 OK\r\n\r\n", "RTSP/1.0 999 No\r\n\r\n", "nonsense\r\n\r\n",
      "RTSP/1.0 200 OK\r\nContent-Length: 99999999\r\n\r\n", "RTSP/1.0 200 OK\r\nContent-Length: -1\r\n\r\n",
      "RTSP/1.0 200 OK\r\nno colon\r\n\r\n", "RTSP/1.0 200 OK\r\nX: " + String(repeating: "y", count: 20_000),
      "RTSP/1.0 200 OK\r\n" + String(repeating: "X: y\r\n", count: 100) + "\r\n",
    ])
  func `what is malformed or too long ends the reading`(text: String) {
    for chunk in [1, 7, 100_000] {
      #expect(throws: ReceiverError.self) { _ = try Self.read(Array(text.utf8), chunk: chunk) }
    }
  }

  @Test func `descriptions of cameras are read`() throws {
    let text = """
      v=0\r\no=- 1 1 IN IP4 192.0.2.1\r\ns=Session\r\nc=IN IP4 239.1.2.3/127\r\nt=0 0\r
      m=audio 0 RTP/AVP 97\r\na=rtpmap:97 MPEG4-GENERIC/16000/1\r
      m=video 5006 RTP/AVPF 98 96 99\r\nb=AS:5000\r\na=rtpmap:98 H265/90000\r
      a=rtpmap:96 h264/90000\r\na=rtpmap:99 rtx/90000\r\na=fmtp:99 apt=96;rtx-time=500\r
      a=fmtp:96 packetization-mode=1; profile-level-id=42C01E; sprop-parameter-sets=Z0LAHtkDxWhAAAADAEAAAAwDxYuS,aMuMsg==,aEuMsg==\r
      a=control:rtsp://192.0.2.1/x/trackID=2\r\na=rtcp-mux\r\n
      """
    let description = try ReceivedDescription(Array(text.utf8))
    let picture = try description.picture()
    #expect(picture.payloadType == 96 && picture.retransmissionPayloadType == 99)
    #expect(picture.medium.port == 5006 && picture.medium.isMultiplexed)
    #expect(picture.parameterSets.map { $0.prefix(2) } == [[0x67, 0x42], [0x68, 0xcb], [0x68, 0x4b]])
    #expect(description.address == "239.1.2.3" && picture.timeToLive == 127)
    #expect(picture.address?.isMulticast == true && !picture.profile.isProtected)
    #expect(description.sound() == nil && description.otherSound == "MPEG4-GENERIC")
    for wrong in [
      "m=video", "m=video x RTP/AVP 96", "", "garbage", String(repeating: "m=video 0 RTP/AVP 96\n", count: 20),
    ] {
      #expect(throws: ReceiverError.self) { _ = try ReceivedDescription(Array(wrong.utf8)).picture() }
    }
    let foreign = try ReceivedDescription(Array("m=video 0 RTP/AVP 98\na=rtpmap:98 VP8/90000\n".utf8))
    #expect(
      throws: ReceiverError.unsupported("the session description has no H.264 or HEVC stream; its codecs are VP8")
    ) {
      _ = try foreign.picture()
    }
  }

  @Test func `a description of HEVC is read, unless its packets have another order or several streams`() throws {
    func picture(_ parameters: String) throws -> ReceivedDescription.Track {
      // As ffmpeg describes a stream of x265.
      let text = """
        v=0\r\nm=video 5004 RTP/AVP 96\r\na=rtpmap:96 H265/90000\r
        a=fmtp:96 sprop-vps=QAEMAf//AWAAAAMAkAAAAwAAAwA8lZgJ; \
        sprop-sps=QgEBAWAAAAMAkAAAAwAAAwA8oAoIDBAelZmkkyvBaAgAAAMACAAAAwDIQA==; sprop-pps=RAHBc8CJ\(parameters)\r\n
        """
      return try ReceivedDescription(Array(text.utf8)).picture()
    }
    for parameters in ["", ";sprop-max-don-diff=0;tx-mode=SRST"] {
      let track = try picture(parameters)
      #expect(track.contents == .hevc && track.payloadType == 96)
      #expect(track.parameterSets.map { $0.prefix(2) } == [[0x40, 1], [0x42, 1], [0x44, 1]])
    }
    for (parameters, reason) in [
      (";sprop-max-don-diff=2", "HEVC with sprop-max-don-diff 2: 0 is received"),
      (";tx-mode=MRST", "HEVC with tx-mode MRST: SRST is received"),
    ] {
      #expect(throws: ReceiverError.unsupported(reason)) { _ = try picture(parameters) }
    }
  }

  @Test func `sound, keys and senders are read`() throws {
    let key = "WVNfX19zZW1jdGwgKCkgewkyMjA7fQp9CnVubGVz"
    let text = """
      v=0\r\no=- 1 1 IN IP4 192.0.2.1\r\ns=-\r\nc=IN IP4 239.1.2.3/7\r\nt=0 0\r
      a=source-filter: incl IN IP4 239.1.2.3 192.0.2.1\r
      m=audio 5008 RTP/AVP 0 98\r\na=rtpmap:98 opus/48000/2\r\na=control:trackID=1\r
      m=video 5004 RTP/SAVPF 96\r\nc=IN IP6 ff02::1\r\na=rtpmap:96 H264/90000\r
      a=crypto:1 F8_128_HMAC_SHA1_80 inline:\(key)\r\na=crypto:2 AES_CM_128_HMAC_SHA1_80 inline:\(key)\r
      a=source-filter: excl IN IP6 ff02::1 2001:db8::1\r\n
      """
    let description = try ReceivedDescription(Array(text.utf8))
    let (picture, sound) = (try description.picture(), try #require(description.sound()))
    #expect(sound.payloadType == 98 && sound.contents == .opus && sound.medium.control == "trackID=1")
    #expect(sound.address?.text == "239.1.2.3" && sound.timeToLive == 7 && sound.source?.text == "192.0.2.1")
    #expect(picture.address?.text == "ff02::1" && picture.timeToLive == nil)
    #expect(picture.profile == .savpf && picture.profile.unprotected == .avpf)
    // The first key whose suite is known: that of RFC 4568 section 6.1.
    let found = try picture.senderKey()
    #expect(found.key.suite == .aes128CounterHMAC80 && found.key.inlineText == key && !found.isOneWay)
    #expect(
      throws: ReceiverError.key("the sound is encrypted (RTP/AVP), and the session description has no key for it")
    ) {
      _ = try sound.senderKey()
    }
  }

  /// A dialogue up to its next request, where each request gets the answer that `answers` has for its method.
  private static func requests(
    _ url: String, _ way: RTSPDialogue.Way, description: String, setUp: [String]
  ) throws -> (requests: [String], dialogue: RTSPDialogue) {
    var dialogue = RTSPDialogue(
      try StreamURL(url), way: way, credentials: nil, makeNonce: { "c" },
      makeControlKey: { (SRTPKey(random: $0), 7, "BASE64") })
    var requests = [String(decoding: dialogue.begin(), as: UTF8.self)]
    var setUp = setUp
    while let request = requests.last, requests.count < 12, !request.hasPrefix("PLAY") {
      let answer: [UInt8]
      switch request.prefix(while: { $0 != " " }) {
      case "DESCRIBE": answer = Answers.response("200 OK", to: request, body: description)
      case "SETUP":
        let text = setUp.removeFirst()
        answer = Answers.response(
          text.hasPrefix("RTP") ? "200 OK" : text, to: request, ["Session: 7", "Transport: \(text)"])
      default: answer = Answers.response("200 OK", to: request)
      }
      let message = try #require(try read(answer, chunk: answer.count).messages.first)
      guard let next = try dialogue.take(message) else { break }
      requests.append(String(decoding: next, as: UTF8.self))
    }
    return (requests, dialogue)
  }

  private static let both = """
    v=0\r\nm=video 0 RTP/SAVP 96\r\na=rtpmap:96 H264/90000\r\na=control:trackID=0\r
    a=crypto:1 AES_CM_128_HMAC_SHA1_80 inline:WVNfX19zZW1jdGwgKCkgewkyMjA7fQp9CnVubGVz\r
    m=audio 0 RTP/SAVP 97\r\na=rtpmap:97 OPUS/48000/2\r\na=control:trackID=1\r\n
    """

  @Test func `tracks are set up one after the other, and sound that is refused takes no picture away`() throws {
    let clear = Self.both.replacingOccurrences(of: "SAVP", with: "AVP")
    func transports(_ requests: [String]) -> [String] {
      requests.filter { $0.hasPrefix("SETUP") }.compactMap { request in
        request.components(separatedBy: "\r\n").first { $0.hasPrefix("Transport: ") }.map { String($0.dropFirst(11)) }
      }
    }
    let ports = [PortPair(rtp: 6000, rtcp: 6001), PortPair(rtp: 6004, rtcp: 6005)]
    let udp = try Self.requests(
      "rtsp://h/x", .udp(ports), description: clear,
      setUp: ["RTP/AVP;unicast;server_port=1000-1001", "RTP/AVP;unicast;server_port=1002-1003"])
    #expect(
      transports(udp.requests) == ["RTP/AVP;unicast;client_port=6000-6001", "RTP/AVP;unicast;client_port=6004-6005"])
    #expect(udp.dialogue.setUp.map(\.transport.serverPorts?.rtp) == [1000, 1002])
    #expect(udp.requests.last?.hasPrefix("PLAY rtsp://h/x RTSP/1.0") == true)
    for status in ["461 Unsupported", "404 Not Found", "500 No"] {
      let tcp = try Self.requests(
        "rtsp://h/x", .interleaved, description: clear, setUp: ["RTP/AVP/TCP;interleaved=0-1", status])
      #expect(transports(tcp.requests).last == "RTP/AVP/TCP;unicast;interleaved=2-3")
      #expect(tcp.dialogue.setUp.map(\.track.contents) == [.h264] && tcp.requests.last?.hasPrefix("PLAY") == true)
      #expect(throws: ReceiverError.self) {
        _ = try Self.requests("rtsp://h/x", .interleaved, description: clear, setUp: [status])
      }
    }
    #expect(throws: ReceiverError.malformed("the server sends two tracks on one channel")) {
      _ = try Self.requests(
        "rtsp://h/x", .interleaved, description: clear,
        setUp: ["RTP/AVP/TCP;interleaved=0-1", "RTP/AVP/TCP;interleaved=1-2"])
    }
    let group = try Self.requests(
      "rtsp://h/x", .multicast, description: clear,
      setUp: ["RTP/AVP;multicast;destination=239.1.2.3;port=5004-5005;ttl=3;source=192.0.2.9", "461 No"])
    let found = try #require(group.dialogue.setUp.first?.transport.group)
    #expect(found.address.text == "239.1.2.3" && found.ports.rtcp == 5005 && found.timeToLive == 3)
    #expect(found.sender?.text == "192.0.2.9" && transports(group.requests).first == "RTP/AVP;multicast")
    // A server that wants the packets fetched from elsewhere, or has no group.
    for wrong in ["RTP/AVP;multicast;destination=192.0.2.1;port=5004-5005", "RTP/AVP;multicast", "RTP/AVP;unicast"] {
      #expect(throws: ReceiverError.self, "\(wrong)") {
        _ = try Self.requests("rtsp://h/x", .multicast, description: clear, setUp: [wrong])
      }
    }
  }

  @Test func `keys are believed over TLS alone, and rtsps sends nothing in the clear`() throws {
    let ports = [PortPair(rtp: 6000, rtcp: 6001), PortPair(rtp: 6002, rtcp: 6003)]
    #expect(throws: ReceiverError.key("the picture's key came over a connection that is not encrypted: use rtsps")) {
      _ = try Self.requests("rtsp://h/x", .udp(ports), description: Self.both, setUp: [])
    }
    // The sound has no key: the picture comes without it.
    let udp = try Self.requests(
      "rtsps://h/x", .udp(ports), description: Self.both, setUp: ["RTP/SAVP;unicast;server_port=1000-1001"])
    #expect(udp.dialogue.setUp.count == 1 && udp.dialogue.setUp[0].keys?.controlMessage == nil)
    // Within TLS without a second encryption, unless the server has no other.
    let tcp = try Self.requests(
      "rtsps://h/x", .interleaved, description: Self.both,
      setUp: ["461 No", "RTP/SAVP/TCP;interleaved=0-1", "RTP/AVP/TCP;interleaved=2-3"])
    #expect(tcp.dialogue.setUp.map { $0.keys != nil } == [true, false])
    #expect(throws: ReceiverError.self) {
      _ = try Self.requests(
        "rtsps://h/x", .udp(ports), description: Self.both.replacingOccurrences(of: "SAVP", with: "AVP"), setUp: [])
    }
  }

  @Test func `random answers trap nowhere`() {
    var random = SeededGenerator(seed: 554)
    let whole = Answers.playing("DESCRIBE rtsp://h/ RTSP/1.0\r\nCSeq: 1")
    for _ in 0..<2000 {
      var bytes = whole
      for _ in 0..<Int.random(in: 1...6, using: &random) {
        bytes[Int.random(in: bytes.indices, using: &random)] = UInt8.random(in: 0...255, using: &random)
      }
      _ = try? Self.read(bytes, chunk: Int.random(in: 1...200, using: &random))
      _ = try? ReceivedDescription(bytes).picture()
      _ = try? ServerTransport(String(decoding: bytes.prefix(80), as: UTF8.self))
      _ = DigestChallenge(choosingFrom: ["Digest " + String(decoding: bytes.prefix(200), as: UTF8.self)])
    }
  }
}
