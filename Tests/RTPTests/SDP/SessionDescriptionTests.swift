import Foundation
import Media
import RTP
import TestSupport
import Testing

@Suite struct SessionDescriptionTests {
  /// The parameter sets of the SDP example that the RTP payload's users quote: `Z0IACpZTBYmI,aMljiA==`.
  static func parameterSets() throws -> ParameterSets {
    try #require(ParameterSets(sequence: hex("67 42000a 965305 8988"), picture: hex("68 c96388")))
  }

  static func address(_ text: String) throws -> ConnectionAddress { try #require(ConnectionAddress(text)) }

  @Test func `H.264 to an IPv4 host`() throws {
    let description = SessionDescription(
      payload: .h264(try Self.parameterSets(), frameRate: FrameRate(30_000, 1001)),
      address: try Self.address("192.0.2.7"), port: 5004, origin: try Self.address("192.0.2.1"),
      sessionID: 3_973_526_400, version: 2, name: "Porch", tool: "nightjar 0.1", kilobitsPerSecond: 3200)
    let expected = """
      v=0\r
      o=- 3973526400 2 IN IP4 192.0.2.1\r
      s=Porch\r
      c=IN IP4 192.0.2.7\r
      t=0 0\r
      a=tool:nightjar 0.1\r
      a=recvonly\r
      m=video 5004 RTP/AVP 96\r
      b=AS:3200\r
      a=rtpmap:96 H264/90000\r
      a=fmtp:96 packetization-mode=1;profile-level-id=42000A;sprop-parameter-sets=Z0IACpZTBYmI,aMljiA==\r
      a=framerate:29.97\r\n
      """
    #expect(description.text == expected)
  }

  @Test func `H.264 to an IPv4 group has the time to live`() throws {
    let description = SessionDescription(
      payload: .h264(
        try Self.parameterSets(), payloadType: try #require(RTPPayloadType(rawValue: 97)), frameRate: .thirty),
      address: try Self.address("239.1.2.3"), port: 5006, timeToLive: 16, sessionID: 1)
    let expected = """
      v=0\r
      o=- 1 1 IN IP4 127.0.0.1\r
      s=nightjar\r
      c=IN IP4 239.1.2.3/16\r
      t=0 0\r
      a=tool:nightjar\r
      a=recvonly\r
      m=video 5006 RTP/AVP 97\r
      a=rtpmap:97 H264/90000\r
      a=fmtp:97 packetization-mode=1;profile-level-id=42000A;sprop-parameter-sets=Z0IACpZTBYmI,aMljiA==\r
      a=framerate:30\r\n
      """
    #expect(description.text == expected)
  }

  @Test func `a transport stream to an IPv6 group has none`() throws {
    let description = SessionDescription(
      payload: .transportStream, address: try Self.address("ff15::efc0:1"), port: 5008, timeToLive: 16, sessionID: 9,
      tool: "")
    let expected = """
      v=0\r
      o=- 9 1 IN IP6 ::1\r
      s=nightjar\r
      c=IN IP6 ff15::efc0:1\r
      t=0 0\r
      a=recvonly\r
      m=video 5008 RTP/AVP 33\r
      a=rtpmap:33 MP2T/90000\r\n
      """
    #expect(description.text == expected)
  }

  @Test(arguments: [
    ("", "-"), ("\r\n", "-"), ("Porch\r\nm=audio 1 RTP/AVP 0", "Porch  m=audio 1 RTP/AVP 0"),
    ("  a\u{0}b\tc\u{7f}d\u{2028}e\u{85}f  ", "a b c d e f"), ("Grüße 📷", "Grüße 📷"),
    (String(repeating: "é", count: 100), String(repeating: "é", count: 64)),
    ("a" + String(repeating: "é", count: 100), "a" + String(repeating: "é", count: 63)),
    (String(repeating: " ", count: 300) + "x", "x"),
  ])
  func `a session name cannot break out of its line`(name: String, written: String) {
    let description = SessionDescription(
      payload: .transportStream, address: .loopback, port: 1, sessionID: 1, name: name, tool: name)
    let lines = description.text.split(separator: "\r\n", omittingEmptySubsequences: false)
    #expect(lines[2] == "s=\(written)")
    #expect(lines.count == (written == "-" ? 9 : 10))
    #expect(description.text.utf8.count { $0 == 10 } == lines.count - 1)
  }

  @Test(arguments: [
    ("0.0.0.0", "IP4", false), ("223.255.255.255", "IP4", false), ("224.0.0.1", "IP4", true),
    ("239.255.255.255", "IP4", true), ("240.0.0.1", "IP4", false), ("::", "IP6", false), ("::1", "IP6", false),
    ("2001:db8::1", "IP6", false), ("1:2:3:4:5:6:7:8", "IP6", false), ("FF02::FB", "IP6", true),
    ("::ffff:192.0.2.1", "IP6", false), ("1:2:3:4:5:6:7::", "IP6", false), ("fe80::1%eth0", "IP6", false),
  ])
  func `an address is known by its digits`(text: String, family: String, isMulticast: Bool) throws {
    let address = try Self.address(text)
    #expect(address.family.rawValue == family)
    #expect(address.isMulticast == isMulticast)
    #expect(address.description == text.split(separator: "%").first.map(String.init))
  }

  @Test(arguments: [
    "", "localhost", "1.2.3", "1.2.3.4.5", "1.2.3.256", "1.2.3.04", "1.2.3.+4", "1.2.3.4 ", "1.2.3.4\r\n", ":", ":::",
    "1:2:3:4:5:6:7", "1:2:3:4:5:6:7:8:9", "1::2::3", "12345::", "g::", "+1::", "::1:", ":1::", "1:2:3:4:5:6:7:8::",
    "::1\r\na=x", "[::1]", "1.2.3.4::", "%eth0", "1:2:3:4:5:6:7:1.2.3.4", "::\u{0665}", "\u{0665}.1.1.1",
  ])
  func `a text that is no address is refused`(text: String) {
    #expect(ConnectionAddress(text) == nil)
  }

  @Test(arguments: [
    ("", ""), ("f", "Zg=="), ("fo", "Zm8="), ("foo", "Zm9v"), ("foob", "Zm9vYg=="), ("fooba", "Zm9vYmE="),
    ("foobar", "Zm9vYmFy"),
  ])
  func `base64 agrees with RFC 4648 section 10`(plain: String, encoded: String) {
    #expect(Base64.encode(Array(plain.utf8)) == encoded)
  }

  @Test func `base64 uses every letter`() {
    let sextets = "00108310518720928b30d38f41149351559761969b71d79f 8218a39259a7a29aabb2dbafc31cb3d35db7e39ebbf3dfbf"
    #expect(
      Base64.encode(hex(sextets))
        == "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/")
  }
}

extension SessionDescriptionTests {
  @Test func `for RTSP, SETUP settles where the stream goes`() throws {
    let description = SessionDescription(
      payload: .h264(try Self.parameterSets(), frameRate: .thirty), announcement: .rtsp,
      address: try Self.address("192.0.2.7"), port: 5004, origin: try Self.address("192.0.2.1"),
      sessionID: 3_973_526_400, name: "Porch", kilobitsPerSecond: 3200)
    let expected = """
      v=0\r
      o=- 3973526400 1 IN IP4 192.0.2.1\r
      s=Porch\r
      c=IN IP4 0.0.0.0\r
      t=0 0\r
      a=tool:nightjar\r
      a=recvonly\r
      a=control:*\r
      a=range:npt=now-\r
      m=video 0 RTP/AVP 96\r
      b=AS:3200\r
      a=rtpmap:96 H264/90000\r
      a=fmtp:96 packetization-mode=1;profile-level-id=42000A;sprop-parameter-sets=Z0IACpZTBYmI,aMljiA==\r
      a=framerate:30\r
      a=control:trackID=0\r\n
      """
    #expect(description.text == expected)
  }

  /// The lines of RFC 4585 section 4.2, RFC 5104 section 7.1 and RFC 4588 section 8.6.
  @Test func `early feedback and retransmissions`() throws {
    var description = SessionDescription(
      payload: .h264(try Self.parameterSets()),
      profile: .avpf(
        retransmission: .init(payloadType: try #require(RTPPayloadType(rawValue: 97)), milliseconds: 3000)),
      announcement: .rtsp, address: try Self.address("2001:db8::7"), port: 5004, sessionID: 1, tool: "")
    let expected = """
      v=0\r
      o=- 1 1 IN IP6 ::1\r
      s=nightjar\r
      c=IN IP6 ::\r
      t=0 0\r
      a=recvonly\r
      a=control:*\r
      a=range:npt=now-\r
      m=video 0 RTP/AVPF 96 97\r
      a=rtpmap:96 H264/90000\r
      a=fmtp:96 packetization-mode=1;profile-level-id=42000A;sprop-parameter-sets=Z0IACpZTBYmI,aMljiA==\r
      a=rtcp-fb:96 nack\r
      a=rtcp-fb:96 nack pli\r
      a=rtcp-fb:96 ccm fir\r
      a=rtpmap:97 rtx/90000\r
      a=fmtp:97 apt=96;rtx-time=3000\r
      a=control:trackID=0\r\n
      """
    #expect(description.text == expected)
    description.media[0].profile = .avpf()
    #expect(DescriptionLines(description.text)["m"] == ["video 0 RTP/AVPF 96"])
    #expect(!description.text.contains("rtx"))
    description.media[0].payload = .transportStream
    let media = try #require(description.text.components(separatedBy: "m=").last)
    #expect(
      media.components(separatedBy: "\r\n") == [
        "video 0 RTP/AVPF 33", "a=rtpmap:33 MP2T/90000", "a=rtcp-fb:33 nack", "a=control:trackID=0", "",
      ])
  }

  @Test func `several media have a line each, with their own control URLs`() throws {
    var sound = PayloadDescription(
      .audio, payloadType: try #require(RTPPayloadType(rawValue: 98)), encodingName: "opus", clockRate: 48_000,
      channels: 2)
    sound.parameters = "sprop-stereo=1"
    sound.attributes = ["ptime:20"]
    let retransmission = MediaDescription.Retransmission(
      payloadType: try #require(RTPPayloadType(rawValue: 99)), milliseconds: 1000)
    var description = SessionDescription(
      media: [
        MediaDescription(.h264(try Self.parameterSets()), port: 5004, kilobitsPerSecond: 3200),
        MediaDescription(sound, profile: .avpf(retransmission: retransmission), port: 5006, kilobitsPerSecond: 80),
      ], announcement: .rtsp, address: try Self.address("192.0.2.7"), sessionID: 1, tool: "")
    let expected = """
      v=0\r
      o=- 1 1 IN IP4 127.0.0.1\r
      s=nightjar\r
      c=IN IP4 0.0.0.0\r
      t=0 0\r
      a=recvonly\r
      a=control:*\r
      a=range:npt=now-\r
      m=video 0 RTP/AVP 96\r
      b=AS:3200\r
      a=rtpmap:96 H264/90000\r
      a=fmtp:96 packetization-mode=1;profile-level-id=42000A;sprop-parameter-sets=Z0IACpZTBYmI,aMljiA==\r
      a=control:trackID=0\r
      m=audio 0 RTP/AVPF 98 99\r
      b=AS:80\r
      a=rtpmap:98 opus/48000/2\r
      a=fmtp:98 sprop-stereo=1\r
      a=ptime:20\r
      a=rtcp-fb:98 nack\r
      a=rtpmap:99 rtx/48000\r
      a=fmtp:99 apt=98;rtx-time=1000\r
      a=control:trackID=1\r\n
      """
    #expect(description.text == expected)
    // Where SETUP settles nothing, each has its port.
    description.announcement = .plain
    #expect(DescriptionLines(description.text)["m"] == ["video 5004 RTP/AVP 96", "audio 5006 RTP/AVPF 98 99"])
    #expect(!description.text.contains("control"))
  }

  @Test func `a group's address and port are written for RTSP too`() throws {
    let description = SessionDescription(
      payload: .transportStream, announcement: .rtsp, address: try Self.address("239.255.1.1"), port: 5004,
      timeToLive: 4, sessionID: 1)
    let lines = DescriptionLines(description.text)
    #expect(lines["c"] == ["IN IP4 239.255.1.1/4"])
    #expect(lines["m"] == ["video 5004 RTP/AVP 33"])
  }
}
