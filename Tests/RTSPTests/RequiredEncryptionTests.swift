import Media
import RTP
import RTSP
import Testing

/// Where encryption is required, nothing is sent that can be read on the way.
@Suite struct RequiredEncryptionTests {
  private func refusal(_ transport: String, isEncrypted: Bool, isRequired: Bool = true) throws -> Refusal? {
    var transports = TransportCapabilities(isMulticastServed: true, isMultiplexingServed: true)
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
}
