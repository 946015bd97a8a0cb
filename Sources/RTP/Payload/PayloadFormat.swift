package import Media

/// An RTP payload format (RFC 3550 section 2.2): the packets of one codec, the lines of a session description, and the
/// elements by which players read it.
///
/// A format is a folder of `RTP` with its packetizer, and a line in `StreamPayload.all`.
package protocol PayloadFormat: Sendable {
  /// The type of ``makePacketizer(of:maximumPacketSize:)``.
  associatedtype FormatPacketizer: Packetizer

  /// The name in a destination's URL: `?payload=h264`.
  var name: String { get }
  /// The name for people: `H.264`.
  var title: String { get }
  /// The access units at which a receiver can begin.
  var keyFrameRule: KeyFrameRule { get }
  /// `true` if the first parts of an access unit can be sent before the last exists.
  var takesParts: Bool { get }
  /// `true` if the packets hold a clock, which is repeated where no access unit comes (``Packetizer``).
  var repeatsClock: Bool { get }
  /// The way in which players read the packets.
  var players: PlayerSupport { get }
  /// The channels of the sound that the packets carry beside the pictures; `nil` where sound is a stream of its own.
  var sound: OpusChannels? { get }

  /// The codec of the pictures; nil for sound.
  var codec: VideoCodec? { get }

  /// Returns the format for pictures of another codec, or the same format where it has one codec.
  func with(codec: VideoCodec) -> any PayloadFormat

  /// Returns the format with a sound beside the pictures, or the same format where sound is a stream of its own.
  func with(sound: OpusChannels) -> any PayloadFormat

  /// Returns what a session description says of the payload of `track`.
  func description(of track: TrackProperties) -> PayloadDescription

  /// Creates a packetizer of `stream` that makes packets of at most `maximumPacketSize` bytes.
  ///
  /// - Throws: ``PacketizerError`` for a size that cannot carry the payload.
  func makePacketizer(of stream: RTPStream, maximumPacketSize: Int) throws(PacketizerError) -> FormatPacketizer

  /// Creates a packetizer as ``makePacketizer(of:maximumPacketSize:)``, which changes in place. A requirement with a
  /// default implementation, so that the compiler can make the one of each format.
  ///
  /// - Throws: ``PacketizerError`` for a size that cannot carry the payload.
  func packetizer(of stream: RTPStream, maximumPacketSize: Int) throws(PacketizerError) -> any PacketizerReference
}

extension PayloadFormat {
  /// The payload type, encoding name and clock: the description without what depends on the track.
  package var encoding: PayloadDescription { description(of: TrackProperties()) }

  /// `false`.
  package var repeatsClock: Bool { false }

  /// `nil`.
  package var sound: OpusChannels? { nil }

  /// Returns the same format.
  package func with(codec: VideoCodec) -> any PayloadFormat { self }

  /// Returns the same format.
  package func with(sound: OpusChannels) -> any PayloadFormat { self }

  /// Creates a packetizer in a place of its own.
  ///
  /// - Throws: ``PacketizerError`` for a size that cannot carry the payload.
  package func packetizer(
    of stream: RTPStream, maximumPacketSize: Int
  ) throws(PacketizerError) -> any PacketizerReference {
    PacketizerBox(try makePacketizer(of: stream, maximumPacketSize: maximumPacketSize))
  }
}

/// The access units at which a receiver can begin.
package enum KeyFrameRule: Sendable {
  /// Key frames alone (video). What follows a lost access unit is of no use up to the next key frame.
  case keyFrames
  /// Every access unit (sound): none needs another one.
  case everyUnit
}

/// The properties of a track that a session description names.
package struct TrackProperties: Sendable {
  /// The parameter sets of the pictures; nil for sound.
  package var parameterSets: ParameterSets?
  /// The frame rate; nil for sound, or where it is unknown.
  package var frameRate: FrameRate?
  /// The H.264 profile that a decoder must support, which later parameter sets may need; nil for that of the present ones.
  package var profile: H264Profile?

  /// Creates properties; see there.
  package init(parameterSets: ParameterSets? = nil, frameRate: FrameRate? = nil, profile: H264Profile? = nil) {
    self.parameterSets = parameterSets
    self.frameRate = frameRate
    self.profile = profile
  }
}

/// The way in which players read a payload.
package struct PlayerSupport: Sendable {
  /// GStreamer's elements from RTP packets to raw pictures or samples: `rtph264depay ! avdec_h264`.
  package let gstreamerElements: String
  /// `true` if players need the session description; `false` if the address of the packets is enough.
  package let needsDescription: Bool
  /// `true` if ffmpeg decrypts it, with a session description that has a key.
  package let isReadEncryptedByFFmpeg: Bool

  /// Creates a value; see the properties.
  package init(gstreamerElements: String, needsDescription: Bool, isReadEncryptedByFFmpeg: Bool) {
    self.gstreamerElements = gstreamerElements
    self.needsDescription = needsDescription
    self.isReadEncryptedByFFmpeg = isReadEncryptedByFFmpeg
  }
}
