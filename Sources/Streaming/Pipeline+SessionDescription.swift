import Media
public import RTP
import SRTP
import Synchronization

extension Pipeline {
  /// What the receivers at one destination must know, with the parameter sets of now.
  ///
  /// - Parameters:
  ///   - id: the destination; nil comes back where there is no such one.
  ///   - sessionID: the same for the stream's life, unlike any other of this host (RFC 8866 section 5.2).
  public func sessionDescription(for id: ViewerID, sessionID: UInt64) -> SessionDescription? {
    destinations.first { $0.id == id }?
      .description(sendStage, frameRate, sessionID: sessionID)
  }

  /// What viewers are told who ask for the stream by RTSP, with the parameter sets of now.
  ///
  /// - Parameters:
  ///   - origin: this side's address.
  ///   - name: the stream's name, for a person.
  ///   - sessionID: the same for the stream's life, unlike any other of this host.
  ///   - stream: the protected stream that they get; nil is the one in the clear. Its key is for the caller to add.
  ///   - offersFeedback: whether the profile is AVPF, with a stream of retransmissions where the stream is in the clear,
  ///     which some players cannot read; else AVP.
  public func sessionDescription(
    forGuestsAt origin: ConnectionAddress, name: String, sessionID: UInt64, stream: ProtectedStream? = nil,
    offersFeedback: Bool = false
  ) -> SessionDescription {
    let current = parameterSets
    // As long as packets are kept: about a second. A protected stream's come again as they were, under their own key.
    let retransmission =
      stream == nil ? SessionDescription.Retransmission(payloadType: .retransmission, milliseconds: 1000) : nil
    return SessionDescription(
      payload: .h264(current.sets), profile: offersFeedback ? .avpf(retransmission: retransmission) : .avp,
      announcement: .rtsp,
      address: origin, port: 0, origin: origin, sessionID: sessionID, version: sessionID &+ UInt64(current.changes),
      name: name, tool: "nightjar",
      frameRate: frameRate,
      kilobitsPerSecond: sendStage.kilobitsPerSecond(
        packetSize: Self.guestPacketSize, isIPv6: origin.family == .ip6,
        overhead: stream?.key.suite.packetOverhead ?? 0))
  }
}

extension PipelineDestination {
  /// What its receivers must know, with the parameter sets of now.
  func description(_ sendStage: SendStage, _ frameRate: FrameRate, sessionID: UInt64) -> SessionDescription? {
    guard let connection = ConnectionAddress(address.text) else { return nil }
    let current = sendStage.currentParameterSets.withLock { $0 }
    let payload: SessionDescription.Payload =
      switch destination.payload {
      case .h264: .h264(current.sets)
      case .mp2t: .transportStream
      }
    var description = SessionDescription(
      payload: payload, address: connection, port: destination.port, timeToLive: destination.timeToLive ?? 1,
      sessionID: sessionID, version: sessionID &+ UInt64(current.changes), name: "nightjar", tool: "nightjar",
      frameRate: frameRate,
      kilobitsPerSecond: sendStage.kilobitsPerSecond(
        packetSize: destination.maximumPacketSize, isIPv6: address.isIPv6, overhead: suite?.packetOverhead ?? 0))
    description.multiplexesControl = destination.multiplexesRTCP
    description.sourceFilter = source.flatMap { ConnectionAddress($0.text) }
    if let source = description.sourceFilter { description.origin = source }
    if let protection {
      description.cryptography = [CryptoAttribute(key: protection.key).text]
    }
    return description
  }
}

extension SendStage {
  /// The stream's bandwidth with RTP, UDP and IP headers: 40 bytes a packet with IPv4, 60 with IPv6, and
  /// `overhead` for what protects a packet.
  func kilobitsPerSecond(packetSize: Int, isIPv6: Bool, overhead: Int = 0) -> Int {
    let bitrate = bitrate.load(ordering: .relaxed)
    let packetsPerSecond = bitrate / 8 / (packetSize - overhead) + 1
    return (bitrate + packetsPerSecond * ((isIPv6 ? 60 : 40) + overhead) * 8 + 999) / 1000
  }
}
