package import Platform
package import Streaming
package import WebRTC

extension PeerServer {
  /// The configuration of a server.
  package struct Configuration: Hashable, Sendable {
    /// The number of the UDP port and of the TCP port; 0 for any.
    package var port: UInt16
    /// The addresses to tell browsers beside those of the interfaces, as of a router that forwards the port.
    package var addresses: [IPAddress]
    /// `true` to use loopback addresses alone.
    package var isForThisMachineAlone: Bool
    /// The limits.
    package var limits: PeerTable.Limits

    /// The port unless another is configured.
    package static let standardPort: UInt16 = 8189

    /// Creates a configuration.
    package init(
      port: UInt16 = Configuration.standardPort, addresses: [IPAddress] = [], isForThisMachineAlone: Bool = false,
      limits: PeerTable.Limits = .init()
    ) {
      self.port = port
      self.addresses = addresses
      self.isForThisMachineAlone = isForThisMachineAlone
      self.limits = limits
    }

    /// The most addresses that a browser is told.
    static let addressLimit = 16

    /// Returns the candidates for a host with the addresses `own`: each address by UDP, and then each by TCP.
    ///
    /// - Parameters:
    ///   - hasIPv6: `true` if there is a socket of IPv6.
    ///   - connects: `true` if there are listeners of TCP.
    package func candidates(own: [IPAddress], port: UInt16, hasIPv6: Bool, connects: Bool) -> [Candidate] {
      var usable: [IPAddress] = []
      // A link-local address means nothing to a browser that is not told the link.
      for address in own where (hasIPv6 || !address.isIPv6) && !address.isLinkLocal && !usable.contains(address) {
        usable.append(address)
      }
      // A browser of another machine cannot use a loopback address, and one of this machine needs it only without others.
      let ranked = usable.filter { $0.isLoopback == isForThisMachineAlone }
      let given = addresses.filter { !ranked.contains($0) }.prefix(Self.addressLimit)
      // The given ones come behind the direct ones, because the way through a router is longer, and are all told.
      let all = (ranked.isEmpty ? usable : ranked).prefix(Self.addressLimit - given.count) + given
      return all.map { Candidate(address: $0, port: port) }
        + (connects ? all.map { Candidate(address: $0, port: port, transport: .tcpPassive) } : [])
    }
  }
}

/// The reason why a server takes no session.
package enum PeerServerError: Failure, Hashable {
  /// There are too many sessions.
  case tooMany
  /// The camera's stream has just been replaced by another one.
  case replaced
  /// There is no server of sessions.
  case notServed
  /// The browser takes H.264 instead of the camera's codec, and gets none.
  case noH264(OfferError, H264Refusal)

  /// A one-line description for the client.
  package var description: String {
    switch self {
    case .tooMany: "too many browsers watch, or are about to: try again in a moment"
    case .replaced: "the camera's stream is just being replaced: try again in a moment"
    case .notServed: "browsers get no WebRTC here, because its UDP port is in use: the log says more"
    case .noH264(let error, let refusal): "\(error); \(refusal)"
    }
  }

  /// The kind of failure.
  package var kind: FailureKind {
    switch self {
    case .tooMany, .replaced: .temporary
    case .notServed: .unavailable
    case .noH264(_, let refusal): refusal.kind
    }
  }
}
