public import RTP

/// The transports that a server supports.
public struct TransportCapabilities: Hashable, Sendable {
  /// The RTP profiles. A client that reads an AVPF description may request AVP, and then sends no early feedback. The
  /// secure profiles are served on encrypted connections only, regardless of this set, because their keys go over the
  /// connection.
  public var profiles: Set<TransportProfile>
  /// `true` if the server sends over UDP to the client.
  public var isUDPServed: Bool
  /// `true` if the server sends over the RTSP connection.
  public var isTCPServed: Bool
  /// `true` if the server sends to a multicast group.
  public var isMulticastServed: Bool
  /// `true` if RTP and RTCP may share a port.
  public var isMultiplexingServed: Bool
  /// `true` if the server sends nothing that others on the path can read. Without SRTP it then sends only over an
  /// encrypted RTSP connection.
  public var requiresEncryption = false
  /// `true` if the connection of the request is encrypted.
  private(set) var isConnectionEncrypted = false

  /// Returns the transports that remain for a client on a connection that is encrypted, or is not.
  func onConnection(isEncrypted: Bool) -> TransportCapabilities {
    var rest = self
    rest.isConnectionEncrypted = isEncrypted
    return rest
  }

  /// Returns `true` if the transport meets the secrecy requirements.
  fileprivate func isSecretEnough(_ specification: TransportSpecification) -> Bool {
    if specification.profile.isProtected { return isConnectionEncrypted }
    return !requiresEncryption || isConnectionEncrypted && specification.lower == .tcp
  }

  /// Creates the given capabilities.
  public init(
    profiles: Set<TransportProfile> = [.avp, .avpf], isUDPServed: Bool = true, isTCPServed: Bool = true,
    isMulticastServed: Bool = false, isMultiplexingServed: Bool = false
  ) {
    self.profiles = profiles
    self.isUDPServed = isUDPServed
    self.isTCPServed = isTCPServed
    self.isMulticastServed = isMulticastServed
    self.isMultiplexingServed = isMultiplexingServed
  }
}

/// The transport of one stream of a session.
public struct SelectedTransport: Hashable, Sendable {
  /// The destination of a stream's packets.
  public enum Delivery: Hashable, Sendable {
    /// These ports of the address that the RTSP connection came from.
    case udp(PortPair)
    /// These channels of the RTSP connection.
    case interleaved(ChannelPair)
    /// The server's multicast group.
    case multicast
  }

  /// The profile that the client requested.
  public var profile: TransportProfile
  /// The destination of the packets.
  public var delivery: Delivery
  /// `true` if the client named a destination. The client gets the stream at its own address, and the response says
  /// so.
  public var hasDestination: Bool

  /// Selects the first alternative that the server supports, RFC 2326 section 12.39.
  ///
  /// - Parameters:
  ///   - header: The values of `Transport`.
  ///   - capabilities: The server's transports.
  ///   - usedChannels: The channels of this connection that carry another stream.
  /// - Throws: ``TransportError`` if there is none: with 461 if the alternatives could be parsed, otherwise 400.
  public init(
    choosingFrom header: [String], capabilities: TransportCapabilities, usedChannels: Set<UInt8> = []
  ) throws(TransportError) {
    let text = header.joined(separator: ",")
    let alternatives = try TransportSpecification.alternatives(text)
    guard !alternatives.isEmpty else { throw .missing }
    var malformed: String?
    var hasProtected = false
    for alternative in alternatives {
      switch alternative {
      case .foreign: continue
      case .malformed(let parameter): malformed = malformed ?? parameter
      case .specification(let specification):
        guard specification.isPlay, capabilities.profiles.contains(specification.profile) else { continue }
        hasProtected = hasProtected || specification.profile.isProtected
        guard
          capabilities.isSecretEnough(specification),
          let delivery = Self.delivery(specification, capabilities: capabilities, usedChannels: usedChannels)
        else { continue }
        profile = specification.profile
        self.delivery = delivery
        hasDestination = specification.destination != nil
        return
      }
    }
    if let malformed { throw .parameter(malformed) }
    if hasProtected, !capabilities.isConnectionEncrypted { throw .keyInTheClear(text) }
    if capabilities.requiresEncryption { throw .unencrypted(text) }
    throw .unsupported(text)
  }

  private static func delivery(
    _ specification: TransportSpecification, capabilities: TransportCapabilities, usedChannels: Set<UInt8>
  ) -> Delivery? {
    switch (specification.lower, specification.isMulticast) {
    case (.tcp, false):
      guard capabilities.isTCPServed, let channels = channels(specification.channels, usedChannels) else { return nil }
      return .interleaved(channels)
    case (.udp, false):
      guard capabilities.isUDPServed, var ports = specification.clientPorts else { return nil }
      if specification.isMultiplexed, capabilities.isMultiplexingServed { ports.rtcp = ports.rtp }
      // Without RTCP-mux, equal ports are no pair: RTCP would be taken for RTP.
      if ports.rtp == ports.rtcp, !(specification.isMultiplexed && capabilities.isMultiplexingServed) { return nil }
      return .udp(ports)
    case (.udp, true):
      // All viewers share one group, which is protected for all or for none.
      return capabilities.isMulticastServed && specification.profile.isProtected == capabilities.requiresEncryption
        ? .multicast : nil
    case (.tcp, true):
      return nil
    }
  }

  /// Returns the client's channels if they are free, otherwise the first free pair; `nil` if there is none.
  private static func channels(_ asked: ChannelPair?, _ used: Set<UInt8>) -> ChannelPair? {
    if let asked, asked.rtp != asked.rtcp, !used.contains(asked.rtp), !used.contains(asked.rtcp) { return asked }
    for channel in stride(from: UInt8(0), through: 254, by: 2)
    where !used.contains(channel) && !used.contains(channel + 1) {
      return ChannelPair(rtp: channel, rtcp: channel + 1)
    }
    return nil
  }

  /// The channels that the transport uses.
  var usedChannels: [UInt8] {
    if case .interleaved(let channels) = delivery { [channels.rtp, channels.rtcp] } else { [] }
  }
}

/// The `Transport` header of the response to SETUP, RFC 2326 section 12.39.
public struct TransportAnswer: Hashable, Sendable, CustomStringConvertible {
  /// The server's addition to the client's request.
  public enum Server: Hashable, Sendable {
    /// The ports from which the server sends and at which it receives RTCP.
    case udp(PortPair, client: ConnectionAddress)
    /// The RTSP connection itself, which has no ports.
    case interleaved
    /// The group, its ports, and the maximum number of routers that its packets may pass.
    case multicast(ConnectionAddress, PortPair, timeToLive: UInt8)
  }

  /// The selected transport.
  public var transport: SelectedTransport
  /// The server's side, of the same kind as the transport's delivery.
  public var server: Server
  /// The stream's synchronization source; `nil` if unknown. The RFC allows it for unicast only.
  public var ssrc: UInt32?

  /// Creates an answer; see the properties.
  public init(_ transport: SelectedTransport, server: Server, ssrc: UInt32? = nil) {
    self.transport = transport
    self.server = server
    self.ssrc = ssrc
  }

  /// The text as written in the header.
  public var description: String {
    var text = transport.profile.rawValue
    switch server {
    case .udp(let serverPorts, let client):
      text += ";unicast"
      if transport.hasDestination { text += ";destination=\(client)" }
      if case .udp(let ports) = transport.delivery {
        text += ";client_port=\(ports);server_port=\(serverPorts)"
        if ports.rtp == ports.rtcp { text += ";RTCP-mux" }
      }
    case .interleaved:
      text += "/TCP;unicast"
      if case .interleaved(let channels) = transport.delivery { text += ";interleaved=\(channels)" }
    case .multicast(let group, let ports, let timeToLive):
      return text + ";multicast;destination=\(group);port=\(ports);ttl=\(timeToLive)"
    }
    if let ssrc {
      let digits = String(ssrc, radix: 16, uppercase: true)
      text += ";ssrc=\(String(repeating: "0", count: 8 - digits.count))\(digits)"
    }
    return text
  }
}
