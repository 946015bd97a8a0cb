package import Platform

/// A candidate of this side, RFC 8839 section 5.1: an address at which peers reach the one port of all sessions.
package struct Candidate: Hashable, Sendable {
  /// The transport of a candidate.
  package enum Transport: Hashable, Sendable {
    /// UDP.
    case udp
    /// TCP whose connections the peer opens (RFC 6544 section 4.5).
    case tcpPassive
  }

  /// The address.
  package let address: IPAddress
  /// The port.
  package let port: UInt16
  /// The transport.
  package let transport: Transport

  /// Creates a candidate.
  package init(address: IPAddress, port: UInt16, transport: Transport = .udp) {
    (self.address, self.port, self.transport) = (address, port, transport)
  }

  /// The priority of the candidate at `index` of a list, RFC 8445 section 5.1.2.1: all are host candidates, those of
  /// UDP before those of TCP (RFC 6544 section 4.2).
  package func priority(at index: Int) -> UInt32 {
    let preference = UInt32(transport == .udp ? 0x8000 : 0x4000) - UInt32(min(index, 0x3fff))
    return 126 << 24 | preference << 8 | 255
  }

  /// The value of `a=candidate` for the candidate at `index` of a list. Pairs of candidates are told apart by their
  /// foundation, so that each has its own.
  package func attribute(at index: Int) -> String {
    let name = transport == .udp ? "udp" : "tcp"
    let type = transport == .udp ? "" : " tcptype passive"
    return "candidate:\(index + 1) 1 \(name) \(priority(at: index)) \(address.text) \(port) typ host\(type)"
  }
}
