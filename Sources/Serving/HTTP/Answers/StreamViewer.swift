import Platform
package import Streaming

/// A viewer of a stream, with its delivery statistics.
package struct StreamViewer: Codable, Hashable, Sendable {
  /// The camera's name.
  package var camera: String
  /// `true` if the viewer joined by RTSP or HTTP; `false` for a given destination.
  package var isGuest: Bool
  /// The viewer's kind: `destination`, `rtsp`, `webrtc`, `mjpeg`, `snapshot` or `mp3`. The
  /// ``StreamStatus/Destination/packets`` of `mjpeg` and `snapshot` are pictures, those of `mp3` are MP3 frames.
  package var kind: String { delivery.kind ?? Self.kind(isGuest: isGuest, transport) }
  /// The transport of the stream; nil if it is not known.
  package var transport: ViewerPeer.Transport?
  /// The numeric address of the viewer or its group, without brackets; nil for the control socket.
  package var address: String?
  /// The UDP port of RTP, or the client's TCP port.
  package var port: Int?
  /// The user or token that has logged in; nil if there was no login.
  package var user: String?
  /// `true` if the stream is encrypted in transit.
  package var isEncrypted: Bool
  /// The time for which the viewer has watched, in seconds; nil from an older server.
  package var seconds: Double?
  /// The viewer's name and statistics; in JSON they stand beside the other fields.
  package var delivery: StreamStatus.Destination

  private enum CodingKeys: String, CodingKey {
    case camera
    case isGuest = "guest"
    case transport
    case address
    case port
    case user
    case isEncrypted = "encrypted"
    case seconds
  }

  /// Returns the kind of a viewer that gets RTP.
  package static func kind(isGuest: Bool, _ transport: ViewerPeer.Transport?) -> String {
    isGuest ? transport == .webrtc ? "webrtc" : "rtsp" : "destination"
  }

  /// Creates a viewer.
  package init(
    camera: String, isGuest: Bool, peer: ViewerPeer? = nil, delivery: StreamStatus.Destination
  ) {
    (self.camera, self.isGuest, self.delivery) = (camera, isGuest, delivery)
    (transport, address, port) = (peer?.transport, peer?.address, peer?.port)
    (user, isEncrypted) = (peer?.user, peer?.isEncrypted ?? false)
    // Nobody needs more than tenths.
    seconds = peer.map { ((Instant.now() - $0.since).seconds * 10).rounded() / 10 }
    // For clients of the API, it is a field of every viewer.
    self.delivery.kind = kind
  }

  /// Decodes the output of ``encode(to:)``.
  package init(from decoder: any Decoder) throws {
    let container = try decoder.container(keyedBy: CodingKeys.self)
    camera = try container.decode(String.self, forKey: .camera)
    isGuest = try container.decode(Bool.self, forKey: .isGuest)
    transport = try container.decodeIfPresent(ViewerPeer.Transport.self, forKey: .transport)
    address = try container.decodeIfPresent(String.self, forKey: .address)
    port = try container.decodeIfPresent(Int.self, forKey: .port)
    user = try container.decodeIfPresent(String.self, forKey: .user)
    // An older server sends none of these fields.
    isEncrypted = try container.decodeIfPresent(Bool.self, forKey: .isEncrypted) ?? false
    seconds = try container.decodeIfPresent(Double.self, forKey: .seconds)
    delivery = try StreamStatus.Destination(from: decoder)
  }

  /// Encodes one object with all statistics.
  package func encode(to encoder: any Encoder) throws {
    try delivery.encode(to: encoder)
    var container = encoder.container(keyedBy: CodingKeys.self)
    try container.encode(camera, forKey: .camera)
    try container.encode(isGuest, forKey: .isGuest)
    try container.encodeIfPresent(transport, forKey: .transport)
    try container.encodeIfPresent(address, forKey: .address)
    try container.encodeIfPresent(port, forKey: .port)
    try container.encodeIfPresent(user, forKey: .user)
    try container.encode(isEncrypted, forKey: .isEncrypted)
    try container.encodeIfPresent(seconds, forKey: .seconds)
  }
}

/// The answer to `GET /v1/viewers`.
package struct ViewersAnswer: Codable, Hashable, Sendable {
  /// The viewers of all requested cameras.
  package var viewers: [StreamViewer]

  /// Creates an answer.
  package init(viewers: [StreamViewer]) {
    self.viewers = viewers
  }
}
