import Media
import Platform
import RTP
import RTSP
import Testing

/// Where encryption is required, nothing is sent that can be read on the way.
@Suite struct RequiredEncryptionTests {
  private func refusal(_ transport: String, isEncrypted: Bool, isRequired: Bool = true) throws -> Refusal? {
    var transports = TransportCapabilities(
      profiles: Set(TransportProfile.allCases), isMulticastServed: true, isMultiplexingServed: true)
    transports.requiresEncryption = isRequired
    var table = SessionTable(configuration: .init(presentations: ["/camera": 1], transports: transports))
    let scheme = isEncrypted ? "rtsps" : "rtsp"
    let request = try request(
      "SETUP \(scheme)://h/camera/trackID=0 RTSP/1.0\nCSeq: 1\nTransport: \(transport)")
    let client = try #require(ConnectionAddress("192.0.2.9"))
    let answer = table.answer(
      request,
      on: .init(
        identifier: 1, client: client, authority: "192.0.2.1:8322", scheme: isEncrypted ? .rtsps : .rtsp), at: .zero)
    #expect((answer.refusal == nil) == (answer.response.status == .ok))
    if answer.refusal != nil { #expect(answer.response.status == .unsupportedTransport) }
    return answer.refusal
  }

  @Test(arguments: [
    "RTP/AVP;unicast;client_port=5000-5001", "RTP/AVPF/UDP;unicast;client_port=5000-5000;RTCP-mux",
    "RTP/AVP;multicast", "RTP/AVP",
  ])
  func `UDP and multicast are refused, with the mend`(transport: String) throws {
    for isEncrypted in [false, true] {
      let refusal = try #require(try refusal(transport, isEncrypted: isEncrypted))
      #expect(refusal.description.contains("rtsps") && refusal.description.contains("RTP/AVP/TCP"))
      #expect(try self.refusal(transport, isEncrypted: isEncrypted, isRequired: false) == nil)
    }
  }

  @Test func `packets within the connection go where that is encrypted, and only there`() throws {
    #expect(try refusal("RTP/AVP/TCP;interleaved=0-1", isEncrypted: true) == nil)
    #expect(try refusal("RTP/AVP;unicast;client_port=5000-5001,RTP/AVP/TCP;unicast", isEncrypted: true) == nil)
    #expect(try refusal("RTP/AVP/TCP;interleaved=0-1", isEncrypted: false) != nil)
    #expect(try refusal("RTP/AVP/TCP;interleaved=0-1", isEncrypted: false, isRequired: false) == nil)
  }

  @Test(arguments: [
    "RTP/SAVP;unicast;client_port=5000-5001", "RTP/SAVPF/UDP;unicast;client_port=5000-5000;RTCP-mux",
    "RTP/SAVPF/TCP;unicast;interleaved=0-1",
  ])
  func `SRTP is for encrypted connections alone, whatever is required`(transport: String) throws {
    for isRequired in [false, true] {
      #expect(try refusal(transport, isEncrypted: true, isRequired: isRequired) == nil)
      let refusal = try #require(try refusal(transport, isEncrypted: false, isRequired: isRequired))
      #expect(refusal.description.contains("key") && refusal.description.contains("rtsps"))
      // Another alternative may do.
      #expect(
        try (self.refusal("\(transport),RTP/AVP/TCP", isEncrypted: false, isRequired: isRequired) == nil)
          == !isRequired)
    }
  }

  @Test func `a group is in the clear for all or for none`() throws {
    #expect(try refusal("RTP/SAVPF;multicast", isEncrypted: true) == nil)
    #expect(try refusal("RTP/SAVPF;multicast", isEncrypted: true, isRequired: false) != nil)
    #expect(try refusal("RTP/AVP;multicast", isEncrypted: true) != nil)
  }

  @Test(arguments: [
    ("prot=mikey;uri=\"rtsps://h/camera\";data=\"AQAF\"", "rtsps://h/camera", "AQAF"),
    (" PROT = Mikey ; data = AQAF== ", "", "AQAF=="),
  ])
  func `a key that goes along with SETUP is read`(text: String, url: String, data: String) throws {
    let field = try KeyManagementField(request("SETUP rtsps://h/camera RTSP/1.0\nCSeq: 1\nKeyMgmt: \(text)"))
    #expect(field?.url == url && field?.data == data)
    let written = KeyManagementField(url: url, data: data).description
    #expect(try KeyManagementField(request("SETUP rtsps://h RTSP/1.0\nCSeq: 1\nKeyMgmt: \(written)"))?.data == data)
    #expect(try KeyManagementField(request("SETUP rtsps://h/camera RTSP/1.0\nCSeq: 1")) == nil)
  }

  @Test(arguments: [
    "", "mikey", "prot=sdes;data=\"x\"", "prot=mikey", "prot=mikey;data=\"\"", "prot=mikey;data=\"a\";data=\"b\"",
    "prot=mikey;data=\"a\",prot=mikey;data=\"b\"", "prot=mikey;data=a\nKeyMgmt: prot=mikey;data=b",
  ])
  func `a key that cannot be read is refused with how it is written`(text: String) throws {
    let request = try request("SETUP rtsps://h/camera RTSP/1.0\nCSeq: 1\nKeyMgmt: \(text)")
    let error = #expect(throws: KeyManagementError.self) { try KeyManagementField(request) }
    #expect(error?.description.contains("prot=mikey") == true)
  }
}
