package import Media
package import RTP

/// The payload of a stream's RTP packets: a registered ``PayloadFormat``.
package struct StreamPayload: Hashable, Sendable, CustomStringConvertible {
  /// The format of the packets.
  package let format: any PayloadFormat

  /// Creates the payload of a format. Two formats of one name, one codec and one sound are the same payload.
  package init(_ format: any PayloadFormat) { self.format = format }

  /// H.264 by RFC 6184.
  package static let h264 = StreamPayload(H264PayloadFormat())
  /// HEVC by RFC 7798.
  package static let hevc = StreamPayload(HEVCPayloadFormat())
  /// An MPEG transport stream by RFC 2250.
  package static let mp2t = StreamPayload(TransportStreamPayloadFormat(codec: .h264))

  /// Opus by RFC 7587: the payload of a sound track. No destination requests it by itself.
  package static func opus(_ channels: OpusChannels) -> StreamPayload {
    StreamPayload(OpusPayloadFormat(channels: channels))
  }

  /// The payloads that a destination can request. A new format is registered here.
  package static let all = [h264, hevc, mp2t]

  /// Returns the payload that a destination requests by `?payload=`; nil for an unknown name.
  package init?(name: String) {
    guard let payload = Self.all.first(where: { $0.name == name }) else { return nil }
    self = payload
  }

  /// The name in a destination's URL.
  package var name: String { format.name }
  /// `true` if the packets carry a stream's sound beside its pictures; `false` if sound is a stream of its own.
  package var carriesSound: Bool { format.with(sound: .mono).sound != nil }

  /// Returns the payload of pictures of `codec`, without a container.
  package static func pictures(_ codec: VideoCodec) -> StreamPayload {
    switch codec {
    case .h264: .h264
    case .hevc: .hevc
    }
  }

  /// Returns the payload for pictures of `codec`: a container with them, or the payload of that codec.
  package func with(codec: VideoCodec) -> StreamPayload {
    let payload = StreamPayload(format.with(codec: codec))
    return payload.format.codec == codec ? payload : .pictures(codec)
  }

  /// Returns the payload with a sound beside the pictures, where its packets carry that.
  func with(sound: OpusChannels) -> StreamPayload { StreamPayload(format.with(sound: sound)) }

  /// The name for people.
  package var title: String { format.title }
  /// `true` if players need the session description; `false` if the address of the packets is enough.
  package var needsDescription: Bool { format.players.needsDescription }
  /// The name in a destination's URL.
  package var description: String { name }

  package static func == (one: StreamPayload, other: StreamPayload) -> Bool {
    one.name == other.name && one.format.codec == other.format.codec && one.format.sound == other.format.sound
  }

  package func hash(into hasher: inout Hasher) { hasher.combine(name) }
}
