import Platform
import Serving
import Testing
import WebRTC

/// The addresses that a browser is told.
@Suite struct PeerCandidateTests {
  private func texts(
    _ own: [String], given: [String] = [], isForThisMachineAlone: Bool = false, hasIPv6: Bool = true,
    connects: Bool = false
  ) -> [String] {
    let configuration = PeerServer.Configuration(
      addresses: given.compactMap { IPAddress($0) }, isForThisMachineAlone: isForThisMachineAlone)
    let candidates = configuration.candidates(
      own: own.compactMap { IPAddress($0) }, port: 8189, hasIPv6: hasIPv6, connects: connects)
    return candidates.map { "\($0.transport == .udp ? "" : "tcp ")\($0.address.text)" }
  }

  @Test func `addresses of both families are told, and none that is link-local`() {
    let own = ["127.0.0.1", "::1", "192.0.2.7", "169.254.10.20", "2001:db8::7", "fe80::7", "192.0.2.7"]
    #expect(texts(own) == ["192.0.2.7", "2001:db8::7"])
    #expect(texts(own, hasIPv6: false) == ["192.0.2.7"])
    #expect(texts(own, isForThisMachineAlone: true) == ["127.0.0.1", "::1"])
    // A host that has no other address serves itself.
    #expect(texts(["127.0.0.1", "169.254.10.20"]) == ["127.0.0.1"])
  }

  @Test func `an address that is given is told, however many the host has`() {
    let own = (0..<100).map { "192.0.2.\($0)" }
    let told = texts(own, given: ["203.0.113.7", "2001:db8::1"])
    #expect(told.count == 16 && Array(told.suffix(2)) == ["203.0.113.7", "2001:db8::1"])
    #expect(told.prefix(14) == own.prefix(14))
    // One that an interface has is no other.
    #expect(texts(["192.0.2.7"], given: ["192.0.2.7", "203.0.113.7"]) == ["192.0.2.7", "203.0.113.7"])
    #expect(texts(own, given: (0..<20).map { "203.0.113.\($0)" }).count == 16)
  }

  @Test func `each address is told for TCP as well, behind all of UDP and with less priority`() {
    #expect(
      texts(["192.0.2.7", "2001:db8::7"], connects: true)
        == ["192.0.2.7", "2001:db8::7", "tcp 192.0.2.7", "tcp 2001:db8::7"])
    let configuration = PeerServer.Configuration()
    let candidates = configuration.candidates(
      own: ["192.0.2.7", "2001:db8::7"].compactMap { IPAddress($0) }, port: 8189, hasIPv6: true, connects: true)
    let priorities = candidates.enumerated().map { $1.priority(at: $0) }
    #expect(priorities == priorities.sorted(by: >) && Set(priorities).count == 4)
    #expect(candidates[2].attribute(at: 2).hasSuffix(" 192.0.2.7 8189 typ host tcptype passive"))
    #expect(candidates[2].attribute(at: 2).hasPrefix("candidate:3 1 tcp "))
  }
}
