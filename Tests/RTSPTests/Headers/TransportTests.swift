import RTP
import RTSP
import Testing

@Suite struct TransportTests {
  static let all = TransportCapabilities(
    profiles: [.avp, .avpf], isMulticastServed: true, isMultiplexingServed: true)

  static func choose(_ header: String..., capabilities: TransportCapabilities = all) throws(TransportError)
    -> SelectedTransport
  {
    try SelectedTransport(choosingFrom: header, capabilities: capabilities)
  }

  struct Case: Sendable, CustomTestStringConvertible {
    let header: String
    var profile = TransportProfile.avp
    let delivery: SelectedTransport.Delivery
    var testDescription: String { header }
  }

  static func udp(_ rtp: UInt16, _ rtcp: UInt16) -> SelectedTransport.Delivery { .udp(PortPair(rtp: rtp, rtcp: rtcp)) }
  static func tcp(_ rtp: UInt8, _ rtcp: UInt8) -> SelectedTransport.Delivery {
    .interleaved(ChannelPair(rtp: rtp, rtcp: rtcp))
  }

  @Test(arguments: [
    // RFC 2326 section 12.39, 10.4, 14.
    Case(
      header: """
        RTP/AVP;multicast;ttl=127;mode="PLAY",RTP/AVP;unicast;client_port=3456-3457;mode="PLAY"
        """, delivery: .multicast),
    Case(header: "RTP/AVP;unicast;client_port=4588-4589", delivery: udp(4588, 4589)),
    Case(header: "RTP/AVP/UDP;unicast;client_port=3056-3057", delivery: udp(3056, 3057)),
    Case(header: "RTP/AVP/TCP;interleaved=0-1", delivery: tcp(0, 1)),
    Case(header: "RTP/AVP;multicast", delivery: .multicast),
    Case(header: "RTP/AVP", delivery: .multicast),
    // The first that can be used, not the first.
    Case(header: "RTP/SAVP;unicast;client_port=2-3, RTP/AVP;unicast;client_port=4-5", delivery: udp(4, 5)),
    Case(header: "RAW/RAW/UDP;unicast;client_port=x,x-pn-tng/tcp;mode=play,RTP/AVP/TCP", delivery: tcp(0, 1)),
    Case(header: "RTP/AVP;unicast;client_port=99999-3,RTP/AVP/TCP;unicast", delivery: tcp(0, 1)),
    Case(
      header: "RTP/AVP/DCCP;unicast;client_port=2-3,RTP/AVPF;unicast;client_port=4-5", profile: .avpf,
      delivery: udp(4, 5)),
    // Case, spaces, quotes, extensions.
    Case(header: " rtp/avpf/tcp ; Unicast ; INTERLEAVED = 4 - 5 ", profile: .avpf, delivery: tcp(4, 5)),
    Case(header: "RTP/AVP;unicast;client_port=5000;x=\"a,b;c\";append;layers=2", delivery: udp(5000, 5001)),
    Case(header: "RTP/AVP;client_port=5000-5003", delivery: udp(5000, 5003)),
    Case(header: "RTP/AVP;unicast;client_port=5000-5001;mode=\"RECORD,PLAY\"", delivery: udp(5000, 5001)),
    Case(header: "RTP/AVP;unicast;client_port=5000-5001;mode=play;ssrc=1a", delivery: udp(5000, 5001)),
    Case(header: "RTP/AVP;unicast;client_port=5000-5001;RTCP-mux", delivery: udp(5000, 5000)),
    Case(header: "RTP/AVP;unicast;client_port=65534-65535", delivery: udp(65534, 65535)),
    Case(header: "RTP/AVP/TCP;unicast;interleaved=254-255", delivery: tcp(254, 255)),
    Case(header: "RTP/AVP/TCP;unicast;interleaved=7-7", delivery: tcp(0, 1)),
    Case(header: "RTP/AVP/TCP;unicast;client_port=1-2", delivery: tcp(0, 1)),
    Case(header: "RTP/AVP;unicast;destination=198.51.100.1;client_port=5000-5001", delivery: udp(5000, 5001)),
  ])
  func `the client's first choice that is served is taken`(example: Case) throws {
    let transport = try Self.choose(example.header)
    #expect(transport.profile == example.profile)
    #expect(transport.delivery == example.delivery)
    #expect(transport.hasDestination == example.header.contains("destination"))
  }

  @Test func `two headers are one list`() throws {
    #expect(try Self.choose("RTP/SAVP;unicast;client_port=2-3", "RTP/AVP/TCP").delivery == Self.tcp(0, 1))
  }

  @Test(arguments: [
    "RTP/SAVP;unicast;client_port=2-3", "RTP/SAVPF/TCP;unicast", "RTP/AVP/TCP;multicast", "RAW/RAW/UDP", "rtp",
    "x/y/z/w",
    "RTP/AVP/SCTP", "RTP/AVP;unicast", "RTP/AVP;unicast;client_port=2-3;mode=RECORD", "RTP/AVP;unicast;client_port=2-2",
    "é/é",
  ])
  func `461 is for what can be read and is not served`(header: String) {
    #expect(throws: TransportError.unsupported(header)) { try Self.choose(header) }
    #expect(TransportError.unsupported(header).status == .unsupportedTransport)
  }

  @Test func `a transport that is switched off is not taken`() throws {
    var capabilities = TransportCapabilities(profiles: [.avp], isUDPServed: false)
    let header = "RTP/AVPF/TCP;unicast,RTP/AVP;unicast;client_port=2-3,RTP/AVP;multicast,RTP/AVP/TCP;unicast"
    #expect(try Self.choose(header, capabilities: capabilities).delivery == Self.tcp(0, 1))
    capabilities.isTCPServed = false
    #expect(throws: TransportError.unsupported(header)) { try Self.choose(header, capabilities: capabilities) }
    capabilities.isUDPServed = true
    // Without RTCP-mux the second port counts.
    let multiplexed = "RTP/AVP;unicast;client_port=2-3;RTCP-mux"
    #expect(try Self.choose(multiplexed, capabilities: capabilities).delivery == Self.udp(2, 3))
  }

  @Test(arguments: [
    "client_port=", "client_port=a", "client_port=1-", "client_port=-1", "client_port=1-2-3", "client_port=65536",
    "client_port=0-1", "client_port=1-0", "client_port=65535", "client_port=+1-2", "interleaved=256",
    "interleaved=0-256",
    "interleaved=255", "ttl=256", "ttl=", "ssrc=123456789", "ssrc=x", "ssrc=", "ssrc=-1", "mode=", "mode=\"\"",
    "port=70000", "server_port=x",
  ])
  func `a parameter that cannot be read is a bad request`(parameter: String) {
    let error = TransportError.parameter(parameter)
    #expect(throws: error) { try Self.choose("RTP/AVP;unicast;" + parameter) }
    #expect(error.status == .badRequest)
  }

  @Test func `a header without alternatives, or of too many`() {
    #expect(throws: TransportError.missing) { try Self.choose() }
    #expect(throws: TransportError.missing) { try Self.choose(" , ,, ") }
    let many = Array(repeating: "RTP/AVP/TCP", count: 17).joined(separator: ",")
    #expect(throws: TransportError.alternatives(17, limit: 16)) { try Self.choose(many) }
  }

  @Test func `channels in use are not given twice`() throws {
    func channels(_ header: String, used: Set<UInt8>) throws(TransportError) -> SelectedTransport.Delivery {
      try SelectedTransport(choosingFrom: [header], capabilities: Self.all, usedChannels: used).delivery
    }
    #expect(try channels("RTP/AVP/TCP;interleaved=0-1", used: [2, 3]) == Self.tcp(0, 1))
    #expect(try channels("RTP/AVP/TCP;interleaved=0-1", used: [1, 5]) == Self.tcp(2, 3))
    #expect(try channels("RTP/AVP/TCP;interleaved=0-9", used: [9]) == Self.tcp(0, 1))
    #expect(throws: TransportError.unsupported("RTP/AVP/TCP")) {
      try channels("RTP/AVP/TCP", used: Set(stride(from: UInt8(0), through: 254, by: 2)))
    }
  }

  @Test func `the answer says what was settled`() throws {
    let client = try #require(ConnectionAddress("192.0.2.9"))
    let server = TransportAnswer.Server.udp(PortPair(rtp: 6256, rtcp: 6257), client: client)
    let plain = try Self.choose("RTP/AVP/UDP;unicast;client_port=4588-4589")
    #expect(
      TransportAnswer(plain, server: server, ssrc: 0x2a).description
        == "RTP/AVP;unicast;client_port=4588-4589;server_port=6256-6257;ssrc=0000002A")
    let elsewhere = try Self.choose("RTP/AVPF;unicast;destination=198.51.100.1;client_port=2-3;RTCP-mux")
    let one = TransportAnswer.Server.udp(PortPair(rtp: 6256, rtcp: 6256), client: client)
    #expect(
      TransportAnswer(elsewhere, server: one).description
        == "RTP/AVPF;unicast;destination=192.0.2.9;client_port=2;server_port=6256;RTCP-mux")
    let interleaved = try Self.choose("RTP/AVP/TCP;unicast;interleaved=2-3")
    #expect(
      TransportAnswer(interleaved, server: .interleaved, ssrc: .max).description
        == "RTP/AVP/TCP;unicast;interleaved=2-3;ssrc=FFFFFFFF")
    let group = try #require(ConnectionAddress("239.255.1.1"))
    let toGroup = TransportAnswer(
      try Self.choose("RTP/AVP;multicast"), server: .multicast(group, PortPair(rtp: 5004, rtcp: 5005), timeToLive: 1),
      ssrc: 1)
    #expect(toGroup.description == "RTP/AVP;multicast;destination=239.255.1.1;port=5004-5005;ttl=1")
  }
}
