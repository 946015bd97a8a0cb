import Media
import Platform
package import RTP
import SRTP
import Synchronization

extension Pipeline {
  /// Returns the session description for the receivers at one destination, with the present parameter sets.
  ///
  /// - Parameters:
  ///   - id: the destination; nil comes back where there is no such one.
  ///   - sessionID: the same for the stream's life, unlike any other of this host (RFC 8866 section 5.2).
  package func sessionDescription(for id: ViewerID, sessionID: UInt64) -> SessionDescription? {
    destinations.first { $0.id == id }?
      .description(of: tracks, frameRate, sessionID: sessionID)
  }

  /// Returns the session description of the tracks for viewers that request the stream by RTSP, with the present
  /// parameter sets.
  ///
  /// - Parameters:
  ///   - numbers: the numbers of the tracks; nil for ``tracks``.
  ///   - origin: this side's address.
  ///   - name: the stream's name, for a person.
  ///   - sessionID: the same for the stream's life, unlike any other of this host.
  ///   - protection: the protected streams that they get, one for each track; none for the streams in the clear. The
  ///     caller adds the keys.
  ///   - offersFeedback: `true` for the profile AVPF, with a stream of retransmissions where the stream is in the
  ///     clear, which some players cannot read; `false` for AVP.
  package func sessionDescription(
    of numbers: [Int]? = nil, forGuestsAt origin: ConnectionAddress, name: String, sessionID: UInt64,
    protection: [ProtectedStream] = [], offersFeedback: Bool = false
  ) -> SessionDescription {
    let described = numbers?.map { track($0) } ?? tracks
    let changes = described.first?.sendStage.parameterSets?.changes ?? 0
    let media = described.map { track in
      track.sendStage.description(
        forGuestsAt: origin, frameRate: frameRate, protection: protection.first { $0.track == track.number },
        offersFeedback: offersFeedback)
    }
    return SessionDescription(
      media: media, announcement: .rtsp, address: origin, origin: origin, sessionID: sessionID,
      version: sessionID &+ UInt64(changes), name: name, tool: "nightjar")
  }
}

extension SendStage {
  /// Returns the description of the track for viewers that request it by RTSP.
  fileprivate func description(
    forGuestsAt origin: ConnectionAddress, frameRate: FrameRate, protection: ProtectedStream?, offersFeedback: Bool
  ) -> MediaDescription {
    // The time for which packets are kept: about a second. A protected stream's are retransmitted unchanged, under
    // their own key.
    let retransmission =
      protection == nil ? MediaDescription.Retransmission(payloadType: .retransmission, milliseconds: 1000) : nil
    let track = TrackProperties(parameterSets: parameterSets?.sets, frameRate: frameRate, profile: profile)
    return MediaDescription(
      guestPayload.format.description(of: track),
      profile: offersFeedback ? .avpf(retransmission: retransmission) : .avp, port: 0,
      kilobitsPerSecond: kilobitsPerSecond(
        packetSize: Pipeline.guestPacketSize, isIPv6: origin.family == .ip6,
        overhead: protection?.key.suite.packetOverhead ?? 0))
  }
}

extension PipelineDestination {
  /// Returns the session description for its receivers, with the present parameter sets.
  func description(of tracks: [Track], _ frameRate: FrameRate, sessionID: UInt64) -> SessionDescription? {
    guard let connection = ConnectionAddress(address.text) else { return nil }
    let current = tracks[0].sendStage.parameterSets
    let track = TrackProperties(
      parameterSets: current?.sets, frameRate: frameRate, profile: tracks[0].sendStage.profile)
    var media = [
      medium(
        tracks[0].sendStage, payload.format.description(of: track), port: destination.port, protection)
    ]
    if let sound {
      let stage = tracks[sound.track].sendStage
      let payload = stage.guestPayload.format.description(of: TrackProperties())
      media.append(medium(stage, payload, port: sound.port, sound.protection))
    }
    var description = SessionDescription(
      media: media, address: connection, timeToLive: destination.timeToLive ?? 1,
      sessionID: sessionID, version: sessionID &+ UInt64(current?.changes ?? 0) &+ descriptionChanges,
      name: "nightjar", tool: "nightjar")
    description.sourceFilter = source.flatMap { ConnectionAddress($0.text) }
    if let source = description.sourceFilter { description.origin = source }
    return description
  }

  /// Returns the description of one track at this destination.
  private func medium(
    _ sendStage: SendStage, _ payload: PayloadDescription, port: UInt16, _ protection: StreamProtection?
  ) -> MediaDescription {
    var medium = MediaDescription(
      payload, port: port,
      kilobitsPerSecond: sendStage.kilobitsPerSecond(
        packetSize: destination.maximumPacketSize, isIPv6: address.isIPv6, overhead: suite?.packetOverhead ?? 0))
    medium.multiplexesControl = destination.multiplexesRTCP
    if let protection { medium.cryptography = [CryptoAttribute(key: protection.key).text] }
    return medium
  }
}

extension SendStage {
  /// Returns the stream's bandwidth with RTP, UDP and IP headers: 40 bytes a packet with IPv4, 60 with IPv6, and
  /// `overhead` for a packet's protection.
  func kilobitsPerSecond(packetSize: Int, isIPv6: Bool, overhead: Int = 0) -> Int {
    let bitrate = bitrate.load(ordering: .relaxed)
    // Each access unit has a packet at least.
    let packetsPerSecond = max(bitrate / 8 / (packetSize - overhead) + 1, Int(1 / frameInterval.seconds))
    return (bitrate + packetsPerSecond * ((isIPv6 ? 60 : 40) + overhead) * 8 + 999) / 1000
  }
}
