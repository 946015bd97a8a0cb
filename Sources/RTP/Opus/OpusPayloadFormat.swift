package import Media

/// Opus by RFC 7587, 20 ms a packet.
package struct OpusPayloadFormat: PayloadFormat {
  /// The channels that the encoder was given.
  package let channels: OpusChannels

  /// Creates the format.
  package init(channels: OpusChannels = .mono) { self.channels = channels }

  package var name: String { "opus" }
  package var codec: VideoCodec? { nil }
  package var title: String { "Opus" }
  /// Every access unit: a decoder conceals what it misses.
  package var keyFrameRule: KeyFrameRule { .everyUnit }
  package var takesParts: Bool { false }
  package var players: PlayerSupport {
    PlayerSupport(gstreamerElements: "rtpopusdepay ! opusdec", needsDescription: true, isReadEncryptedByFFmpeg: true)
  }

  package func description(of track: TrackProperties) -> PayloadDescription { .opus(channels) }

  package func makePacketizer(
    of stream: RTPStream, maximumPacketSize: Int
  ) throws(PacketizerError) -> OpusPacketizer {
    try OpusPacketizer(stream: stream, maximumPacketSize: maximumPacketSize)
  }
}

extension OpusPacketizer: Packetizer {}

extension PayloadDescription {
  /// Returns the description of Opus by RFC 7587 section 7, with packets of 20 ms and in-band error correction.
  ///
  /// `a=rtpmap` has two channels for mono too (section 7); `sprop-stereo` tells what is in the packets (section 6.1).
  public static func opus(_ channels: OpusChannels, payloadType: RTPPayloadType = .opus) -> PayloadDescription {
    var description = PayloadDescription(
      .audio, payloadType: payloadType, encodingName: "opus", clockRate: OpusPacketizer.clockRate, channels: 2)
    description.parameters =
      "useinbandfec=1;sprop-stereo=\(channels == .stereo ? 1 : 0);sprop-maxcapturerate=\(OpusPacketizer.clockRate)"
    description.attributes = ["ptime:20", "maxptime:20"]
    return description
  }
}
