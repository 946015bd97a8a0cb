public import Media

/// HEVC by RFC 7798, without decoding order numbers.
package struct HEVCPayloadFormat: PayloadFormat {
  /// Creates the format.
  package init() {}

  package var name: String { "hevc" }
  package var title: String { "HEVC" }
  package var codec: VideoCodec? { .hevc }
  package var keyFrameRule: KeyFrameRule { .keyFrames }
  package var takesParts: Bool { true }
  package var players: PlayerSupport {
    PlayerSupport(
      gstreamerElements: "rtph265depay ! avdec_h265", needsDescription: true, isReadEncryptedByFFmpeg: true)
  }

  package func description(of track: TrackProperties) -> PayloadDescription {
    track.parameterSets.map { .hevc($0, frameRate: track.frameRate) } ?? .pictures("H265", .hevc)
  }

  package func makePacketizer(
    of stream: RTPStream, maximumPacketSize: Int
  ) throws(PacketizerError) -> HEVCPacketizer {
    try HEVCPacketizer(stream: stream, maximumPacketSize: maximumPacketSize)
  }
}

extension HEVCPacketizer: Packetizer {}

extension PayloadDescription {
  /// Returns the description of HEVC by RFC 7798 section 7.2.
  ///
  /// - Parameters:
  ///   - sets: The parameter sets of the stream. Of H.264, the description has no parameters.
  ///   - payloadType: The payload type.
  ///   - frameRate: The frame rate in frames per second; omitted if unknown.
  public static func hevc(
    _ sets: ParameterSets, payloadType: RTPPayloadType = .hevc, frameRate: FrameRate? = nil
  ) -> PayloadDescription {
    var description = pictures("H265", payloadType)
    if let sequence = try? HEVCSequenceParameterSet(nalUnit: sets.sequence) {
      var configuration = HEVCFormatParameters(sequence.profileTierLevel)
      configuration.compatibilityFlags = nil
      description.parameters =
        configuration.text
        + ";sprop-vps=\(Base64.encode(sets.video));sprop-sps=\(Base64.encode(sets.sequence))"
        + ";sprop-pps=\(Base64.encode(sets.picture))"
    }
    if let frameRate { description.attributes = ["framerate:\(frameRate)"] }
    return description
  }
}
