package import Media

/// An MPEG-2 transport stream by RFC 2250: one video, and one sound if there is any.
package struct TransportStreamPayloadFormat: PayloadFormat {
  /// The channels of the Opus stream beside the video; `nil` without sound.
  package let sound: OpusChannels?

  package let codec: VideoCodec?

  /// Creates the format.
  package init(codec: VideoCodec, sound: OpusChannels? = nil) {
    self.codec = codec
    self.sound = sound
  }

  package var name: String { "mp2t" }
  package var title: String { "MPEG-TS" }
  package var keyFrameRule: KeyFrameRule { .keyFrames }
  /// `false`: a PES packet begins with its length, and the clock goes with a whole picture.
  package var takesParts: Bool { false }
  package var repeatsClock: Bool { true }
  package var players: PlayerSupport {
    // ffmpeg takes no key for a transport stream.
    PlayerSupport(
      gstreamerElements: "rtpmp2tdepay ! decodebin", needsDescription: false, isReadEncryptedByFFmpeg: false)
  }

  package func with(codec: VideoCodec) -> any PayloadFormat { TransportStreamPayloadFormat(codec: codec, sound: sound) }

  package func with(sound: OpusChannels) -> any PayloadFormat {
    TransportStreamPayloadFormat(codec: codec ?? .h264, sound: sound)
  }

  package func description(of track: TrackProperties) -> PayloadDescription { .transportStream }

  package func makePacketizer(
    of stream: RTPStream, maximumPacketSize: Int
  ) throws(PacketizerError) -> TransportStreamPacketizer {
    try TransportStreamPacketizer(
      stream: stream, maximumPacketSize: maximumPacketSize, codec: codec ?? .h264, sound: sound)
  }
}

extension TransportStreamPacketizer: Packetizer {}

extension PayloadDescription {
  /// An MPEG-2 transport stream by RFC 2250, payload type 33.
  public static let transportStream = PayloadDescription(
    .video, payloadType: .transportStream, encodingName: "MP2T")
}
