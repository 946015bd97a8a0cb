public import Media

/// Who gets a stream, and how it arrives.
public struct StreamViewer: Codable, Hashable, Sendable {
  /// The camera's name.
  public var camera: String
  /// Whether it came by itself, by RTSP, instead of being a destination that somebody gave.
  public var isGuest: Bool
  /// How it gets the stream: `destination`, `rtsp`, or `mjpeg`, whose ``StreamStatus/Destination/packets`` are pictures.
  public var kind: String
  /// What carries the stream to it; nil where that is not known.
  public var transport: ViewerPeer.Transport?
  /// Its numeric address, or its group's, without brackets; nil for the control socket.
  public var address: String?
  /// The UDP port of RTP, or the client's TCP port.
  public var port: Int?
  /// The user or token that has logged in; nil where nobody has.
  public var user: String?
  /// Whether the stream is encrypted on its way.
  public var isEncrypted: Bool
  /// Its name and figures; in JSON they stand beside the others.
  public var delivery: StreamStatus.Destination

  private enum CodingKeys: String, CodingKey {
    case camera
    case isGuest = "guest"
    case kind
    case transport
    case address
    case port
    case user
    case isEncrypted = "encrypted"
  }

  /// All of it.
  public init(
    camera: String, isGuest: Bool, kind: String? = nil, peer: ViewerPeer? = nil, delivery: StreamStatus.Destination
  ) {
    (self.camera, self.isGuest, self.delivery) = (camera, isGuest, delivery)
    (transport, address, port) = (peer?.transport, peer?.address, peer?.port)
    (user, isEncrypted) = (peer?.user, peer?.isEncrypted ?? false)
    self.kind = kind ?? (isGuest ? "rtsp" : "destination")
  }

  /// Reads what ``encode(to:)`` has written.
  public init(from decoder: any Decoder) throws {
    let container = try decoder.container(keyedBy: CodingKeys.self)
    camera = try container.decode(String.self, forKey: .camera)
    isGuest = try container.decode(Bool.self, forKey: .isGuest)
    kind = try container.decode(String.self, forKey: .kind)
    transport = try container.decodeIfPresent(ViewerPeer.Transport.self, forKey: .transport)
    address = try container.decodeIfPresent(String.self, forKey: .address)
    port = try container.decodeIfPresent(Int.self, forKey: .port)
    user = try container.decodeIfPresent(String.self, forKey: .user)
    // A server of before these fields has none of them.
    isEncrypted = try container.decodeIfPresent(Bool.self, forKey: .isEncrypted) ?? false
    delivery = try StreamStatus.Destination(from: decoder)
  }

  /// Writes one object with all figures.
  public func encode(to encoder: any Encoder) throws {
    try delivery.encode(to: encoder)
    var container = encoder.container(keyedBy: CodingKeys.self)
    try container.encode(camera, forKey: .camera)
    try container.encode(isGuest, forKey: .isGuest)
    try container.encode(kind, forKey: .kind)
    try container.encodeIfPresent(transport, forKey: .transport)
    try container.encodeIfPresent(address, forKey: .address)
    try container.encodeIfPresent(port, forKey: .port)
    try container.encodeIfPresent(user, forKey: .user)
    try container.encode(isEncrypted, forKey: .isEncrypted)
  }
}

/// The answer to `GET /v1/viewers`.
public struct ViewersAnswer: Codable, Hashable, Sendable {
  /// Those of every camera that was asked for.
  public var viewers: [StreamViewer]

  /// All of it.
  public init(viewers: [StreamViewer]) {
    self.viewers = viewers
  }
}
