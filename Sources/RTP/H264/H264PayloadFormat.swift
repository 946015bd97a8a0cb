public import Media

/// H.264 by RFC 6184, packetization-mode 1.
package struct H264PayloadFormat: PayloadFormat {
  /// Creates the format.
  package init() {}

  package var name: String { "h264" }
  package var title: String { "H.264" }
  package var codec: VideoCodec? { .h264 }
  package var keyFrameRule: KeyFrameRule { .keyFrames }
  package var takesParts: Bool { true }
  package var players: PlayerSupport {
    PlayerSupport(
      gstreamerElements: "rtph264depay ! avdec_h264", needsDescription: true, isReadEncryptedByFFmpeg: true)
  }

  package func description(of track: TrackProperties) -> PayloadDescription {
    track.parameterSets.map { .h264($0, frameRate: track.frameRate, profile: track.profile) }
      ?? .pictures("H264", .h264)
  }

  package func makePacketizer(
    of stream: RTPStream, maximumPacketSize: Int
  ) throws(PacketizerError) -> H264Packetizer {
    try H264Packetizer(stream: stream, maximumPacketSize: maximumPacketSize)
  }
}

extension H264Packetizer: Packetizer {}

extension PayloadDescription {
  /// Returns the description of H.264 by RFC 6184 section 8.2, packetization-mode 1.
  ///
  /// - Parameters:
  ///   - sets: The parameter sets of the stream.
  ///   - payloadType: The payload type.
  ///   - frameRate: The frame rate in frames per second; omitted if unknown.
  ///   - profile: The profile that a decoder must support, if later parameter sets may need more than `sets`; nil for
  ///     the profile of `sets`.
  public static func h264(
    _ sets: ParameterSets, payloadType: RTPPayloadType = .h264, frameRate: FrameRate? = nil,
    profile: H264Profile? = nil
  ) -> PayloadDescription {
    var description = pictures("H264", payloadType)
    description.parameters =
      "packetization-mode=1;profile-level-id=\(sets.profileLevelID(of: profile));"
      + "sprop-parameter-sets=\(Base64.encode(sets.sequence)),\(Base64.encode(sets.picture))"
    if let frameRate { description.attributes = ["framerate:\(frameRate)"] }
    return description
  }
}
