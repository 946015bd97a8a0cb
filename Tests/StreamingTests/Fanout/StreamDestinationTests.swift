import Streaming
import Testing

@Suite struct StreamDestinationTests {
  @Test(arguments: [
    ("rtp://127.0.0.1:5004", StreamDestination(host: "127.0.0.1", port: 5004)),
    ("rtp://[::1]:5004", StreamDestination(host: "::1", port: 5004)),
    ("rtp://[fe80::1%eth0]:5004", StreamDestination(host: "fe80::1%eth0", port: 5004)),
    ("rtp://box.local:6000/", StreamDestination(host: "box.local", port: 6000)),
    (
      "rtp://239.1.2.3:5004?payload=mp2t&ttl=4&mtu=1400",
      StreamDestination(host: "239.1.2.3", port: 5004, payload: .mp2t, timeToLive: 4, maximumPacketSize: 1400)
    ),
    ("rtp://h:6000?payload=hevc", StreamDestination(host: "h", port: 6000, payload: .hevc)),
    (
      "rtp://h:6000?payload=h264",
      {
        var destination = StreamDestination(host: "h", port: 6000)
        destination.payload = .h264
        return destination
      }()
    ),
    (
      "srtp://h:6000?audio=6100",
      {
        var destination = StreamDestination(host: "h", port: 6000, protection: .init())
        destination.soundPort = .port(6100)
        return destination
      }()
    ),
  ])
  func `a URL is read`(url: String, destination: StreamDestination) throws {
    #expect(try StreamDestination(url: url) == destination)
    // What is printed can be pasted.
    #expect(try StreamDestination(url: destination.description) == destination)
  }

  @Test func `a destination that names H.264 is the same as one that names no payload`() throws {
    let (plain, named) = (
      try StreamDestination(url: "rtp://h:6000"), try StreamDestination(url: "rtp://h:6000?payload=h264")
    )
    #expect(plain == named && Set([plain, named]).count == 1)
    #expect(!plain.namesPayload && named.namesPayload && named.description == "rtp://h:6000?payload=h264")
    #expect(try plain != StreamDestination(url: "rtp://h:6000?payload=hevc"))
  }

  @Test(arguments: [
    ([String](), 1172), (["rtp://h:1?mtu=1400"], 1172), (["rtp://h:1?mtu=600", "rtp://i:1?mtu=700"], 588),
    (["rtp://h:1?mtu=600&payload=mp2t"], 1172), (["rtp://h:1?mtu=600&payload=hevc"], 588),
    (["srtp://h:1?mtu=600&suite=AES_CM_128_HMAC_SHA1_80"], 578),
    (["srtp://h:1?mtu=600&suite=AEAD_AES_256_GCM"], 572), (["rtp://h:1?mtu=200"], 188),
  ])
  func `the payload that fits one packet to every destination is known`(urls: [String], bytes: Int) throws {
    // 12 bytes of RTP header; an RTSP viewer's 1200 less a tag of 16.
    #expect(StreamDestination.payloadLimit(of: try urls.map { try StreamDestination(url: $0) }) == bytes)
  }

  @Test(arguments: [
    "", "rtp://", "rtp://:5004", "rtp://h", "rtp://h:", "rtp://h:0", "rtp://h:65536", "rtp://h:-1", "rtp://h:5004x",
    "udp://h:1", "rtp://u@h:1", "rtp://[::1:5004", "rtp://[::1]", "rtp://::1:5004", "rtp://h h:1", "rtp://h\n:1",
    "rtp://h:1?", "rtp://h:1?payload", "rtp://h:1?payload=x", "rtp://h:1?ttl=256", "rtp://h:1?mtu=199",
    "rtp://h:1?mtu=65508", "rtp://h:+1", "rtp://h:1?mtu=+300", "rtp://h:1?ttl=+3", "rtp://h:1?ttl=",
    "rtp://h:1?ttl=1&ttl=2", "rtp://h:1?x=1", "rtp://h:1&ttl=2", "rtp://h:1?payload=opus",
    "rtp://" + String(repeating: "a", count: 300) + ":1", "rtp://h:1?mtu=" + String(repeating: "9", count: 2000),
  ])
  func `a text that is no destination is refused`(url: String) {
    #expect(throws: StreamDestinationError.self) { try StreamDestination(url: url) }
  }
}
