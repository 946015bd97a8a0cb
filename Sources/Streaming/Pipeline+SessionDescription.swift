import Media
public import RTP

extension Pipeline {
  /// What the receivers at one destination must know, with the parameter sets of now.
  ///
  /// - Parameters:
  ///   - id: the destination; nil comes back where there is no such one.
  ///   - sessionID: the same for the stream's life, unlike any other of this host (RFC 8866 section 5.2).
  public func sessionDescription(for id: ViewerID, sessionID: UInt64) -> SessionDescription? {
    guard let entry = destinations.first(where: { $0.id == id }) else { return nil }
    let (destination, address) = (entry.destination, entry.address)
    guard let connection = ConnectionAddress(address.text) else { return nil }
    let current = parameterSets
    let payload: SessionDescription.Payload =
      switch destination.payload {
      case .h264: .h264(current.sets)
      case .mp2t: .transportStream
      }
    // RTP, UDP and IP headers: 40 bytes a packet with IPv4, 60 with IPv6.
    let packetsPerSecond = encoder.configuration.bitrate / 8 / destination.maximumPacketSize + 1
    let overhead = packetsPerSecond * (address.isIPv6 ? 60 : 40) * 8
    return SessionDescription(
      payload: payload, address: connection, port: destination.port, timeToLive: destination.timeToLive ?? 1,
      sessionID: sessionID, version: sessionID &+ UInt64(current.changes), name: "nightjar", tool: "nightjar",
      frameRate: encoder.configuration.frameRate,
      kilobitsPerSecond: (encoder.configuration.bitrate + overhead + 999) / 1000)
  }
}
