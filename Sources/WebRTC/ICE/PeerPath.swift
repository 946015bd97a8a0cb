package import Platform

/// The way on which a peer's datagrams come, and ours go back: the address of the peer, and what it is reached by.
package struct PeerPath: Hashable, Sendable {
  /// The carrier of the datagrams.
  package enum Carrier: Hashable, Sendable {
    /// The UDP socket.
    case datagrams
    /// A TCP connection by its number, which no other connection has or had (RFC 6544).
    case connection(UInt64)
  }

  /// The peer's address.
  package let address: IPAddress
  /// The peer's port.
  package let port: UInt16
  /// The address of this side at which the peer's datagrams come; `nil` where it is not known. A browser takes only
  /// what comes from the address that it has asked.
  package let local: IPAddress?
  /// The carrier of the datagrams.
  package let carrier: Carrier

  /// Creates a path.
  package init(address: IPAddress, port: UInt16, local: IPAddress? = nil, carrier: Carrier = .datagrams) {
    self.address = address
    self.port = port
    self.local = local
    self.carrier = carrier
  }

  /// `true` if the path is one of UDP.
  package var isDatagrams: Bool { carrier == .datagrams }
}
