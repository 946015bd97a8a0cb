public import RTP

/// The ways in which a server sends.
public struct TransportCapabilities: Hashable, Sendable {
  /// The RTP profiles. A client that reads an AVPF description may ask for AVP: it then sends no early feedback. The
  /// protected ones are served on encrypted connections alone, whatever is given here: their keys go over those.
  public var profiles: Set<TransportProfile>
  /// Whether over UDP to the client.
  public var isUDPServed: Bool
  /// Whether over the RTSP connection.
  public var isTCPServed: Bool
  /// Whether to a group.
  public var isMulticastServed: Bool
  /// Whether RTP and RTCP may share a port.
  public var isMultiplexingServed: Bool
  /// Whether nothing is sent that others on the way can read: without SRTP only over the RTSP connection, and only where
  /// that is encrypted itself.
  public var requiresEncryption = false
  /// Whether the connection is encrypted that is asked on.
  private(set) var isConnectionEncrypted = false

  /// The ways that are left to a client of a connection that is encrypted, or is not.
  func onConnection(isEncrypted: Bool) -> TransportCapabilities {
    var rest = self
    rest.isConnectionEncrypted = isEncrypted
    return rest
  }

  /// Whether packets may go that way as far as keeping them secret matters.
  fileprivate func isSecretEnough(_ specification: TransportSpecification) -> Bool {
    if specification.profile.isProtected { return isConnectionEncrypted }
    return !requiresEncryption || isConnectionEncrypted && specification.lower == .tcp
  }

  /// The ways given.
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

/// How one stream of a session is sent.
public struct SelectedTransport: Hashable, Sendable {
  /// Where the packets of a stream go.
  public enum Delivery: Hashable, Sendable {
    /// To these ports of the address that the RTSP connection came from.
    case udp(PortPair)
    /// On these channels of the RTSP connection.
    case interleaved(ChannelPair)
    /// To the server's group.
    case multicast
  }

  /// The profile that the client asked for.
  public var profile: TransportProfile
  /// Where its packets go.
  public var delivery: Delivery
  /// Whether the client named a destination. It gets the stream at its own address, and the answer says so.
  public var hasDestination: Bool

  /// The first of the alternatives that the server has, RFC 2326 section 12.39.
  ///
  /// - Parameters:
  ///   - header: The values of `Transport`.
  ///   - capabilities: The ways in which the server sends.
  ///   - usedChannels: Channels of this connection that carry another stream.
  /// - Throws: Where there is none: with 461 if they could be read, otherwise 400.
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
      // Without RTCP-mux the same port twice is no pair; RTCP would be taken for RTP.
      if ports.rtp == ports.rtcp, !(specification.isMultiplexed && capabilities.isMultiplexingServed) { return nil }
      return .udp(ports)
    case (.udp, true):
      // All share one group, which is protected for all or for none.
      return capabilities.isMulticastServed && specification.profile.isProtected == capabilities.requiresEncryption
        ? .multicast : nil
    case (.tcp, true):
      return nil
    }
  }

  /// The client's channels where they are free; otherwise the first free pair. Nil where there is none.
  private static func channels(_ asked: ChannelPair?, _ used: Set<UInt8>) -> ChannelPair? {
    if let asked, asked.rtp != asked.rtcp, !used.contains(asked.rtp), !used.contains(asked.rtcp) { return asked }
    for channel in stride(from: UInt8(0), through: 254, by: 2)
    where !used.contains(channel) && !used.contains(channel + 1) {
      return ChannelPair(rtp: channel, rtcp: channel + 1)
    }
    return nil
  }

  /// The channels that it takes up.
  var usedChannels: [UInt8] {
    if case .interleaved(let channels) = delivery { [channels.rtp, channels.rtcp] } else { [] }
  }
}

/// The `Transport` header of the answer to SETUP, RFC 2326 section 12.39.
public struct TransportAnswer: Hashable, Sendable, CustomStringConvertible {
  /// What the server adds to what the client asked for.
  public enum Server: Hashable, Sendable {
    /// The ports it sends from and receives RTCP at.
    case udp(PortPair, client: ConnectionAddress)
    /// The RTSP connection itself, which has no ports.
    case interleaved
    /// The group, its ports, and the routers that its packets may pass.
    case multicast(ConnectionAddress, PortPair, timeToLive: UInt8)
  }

  /// What was chosen.
  public var transport: SelectedTransport
  /// The server's side of it; of the same kind as the transport's delivery.
  public var server: Server
  /// The stream's synchronization source; nil where it is not known. Unicast only, says the RFC.
  public var ssrc: UInt32?

  /// An answer; see the properties.
  public init(_ transport: SelectedTransport, server: Server, ssrc: UInt32? = nil) {
    self.transport = transport
    self.server = server
    self.ssrc = ssrc
  }

  /// As in the header.
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
