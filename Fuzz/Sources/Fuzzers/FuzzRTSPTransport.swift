import RTP
import RTSP

/// Any text as a `Transport` header; the first byte says what the server has. What is chosen is served, and the answer to
/// it, taken as a request, gives the same.
enum FuzzRTSPTransport {
  static func take(_ input: UnsafeRawBufferPointer) {
    guard let flags = input.first else { return }
    let text = String(decoding: input.dropFirst(), as: UTF8.self)
    let capabilities = TransportCapabilities(
      profiles: flags & 1 != 0 ? [.avp] : [.avp, .avpf], isUDPServed: flags & 2 == 0, isTCPServed: flags & 4 == 0,
      isMulticastServed: flags & 8 == 0, isMultiplexingServed: flags & 16 == 0)
    let used: Set<UInt8> = flags & 32 == 0 ? [] : [0, 3]
    do throws(TransportError) {
      let transport = try SelectedTransport(choosingFrom: [text], capabilities: capabilities, usedChannels: used)
      check(transport, capabilities, used)
    } catch {
      precondition(error.status == .badRequest || error.status == .unsupportedTransport)
      precondition(!error.description.isEmpty && error.description.utf8.count < 400)
    }
    _ = try? PlayRange(text)
  }

  static func check(_ transport: SelectedTransport, _ capabilities: TransportCapabilities, _ used: Set<UInt8>) {
    precondition(capabilities.profiles.contains(transport.profile))
    let server: TransportAnswer.Server
    switch transport.delivery {
    case .udp(let ports):
      precondition(capabilities.isUDPServed && ports.rtp > 0 && ports.rtcp > 0)
      precondition(ports.rtp != ports.rtcp || capabilities.isMultiplexingServed)
      server = .udp(PortPair(rtp: 6000, rtcp: 6001), client: .loopback)
    case .interleaved(let channels):
      precondition(capabilities.isTCPServed && channels.rtp != channels.rtcp)
      precondition(!used.contains(channels.rtp) && !used.contains(channels.rtcp))
      server = .interleaved
    case .multicast:
      precondition(capabilities.isMulticastServed)
      server = .multicast(.loopback6, PortPair(rtp: 6000, rtcp: 6001), timeToLive: 1)
    }
    let answer = TransportAnswer(transport, server: server, ssrc: 7).description
    precondition(answer.utf8.allSatisfy { (0x21...0x7e).contains($0) })
    guard
      let again = try? SelectedTransport(choosingFrom: [answer], capabilities: capabilities, usedChannels: used),
      again.delivery == transport.delivery, again.profile == transport.profile
    else { fatalError("an answer that is read otherwise: \(answer)") }
  }
}
