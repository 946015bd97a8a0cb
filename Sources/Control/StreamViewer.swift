/// Who gets a stream, and how it arrives.
public struct StreamViewer: Codable, Hashable, Sendable {
  /// The camera's name.
  public var camera: String
  /// Whether it came by itself, by RTSP, instead of being a destination that somebody gave.
  public var isGuest: Bool
  /// How it gets the stream: `destination`, `rtsp`, or `mjpeg`, whose ``StreamStatus/Destination/packets`` are pictures.
  public var kind: String
  /// Its name and figures; in JSON they stand beside the others.
  public var delivery: StreamStatus.Destination

  private enum CodingKeys: String, CodingKey {
    case camera
    case isGuest = "guest"
    case kind
  }

  /// All of it.
  public init(camera: String, isGuest: Bool, kind: String? = nil, delivery: StreamStatus.Destination) {
    (self.camera, self.isGuest, self.delivery) = (camera, isGuest, delivery)
    self.kind = kind ?? (isGuest ? "rtsp" : "destination")
  }

  /// Reads what ``encode(to:)`` has written.
  public init(from decoder: any Decoder) throws {
    let container = try decoder.container(keyedBy: CodingKeys.self)
    camera = try container.decode(String.self, forKey: .camera)
    isGuest = try container.decode(Bool.self, forKey: .isGuest)
    kind = try container.decode(String.self, forKey: .kind)
    delivery = try StreamStatus.Destination(from: decoder)
  }

  /// Writes one object with all figures.
  public func encode(to encoder: any Encoder) throws {
    try delivery.encode(to: encoder)
    var container = encoder.container(keyedBy: CodingKeys.self)
    try container.encode(camera, forKey: .camera)
    try container.encode(isGuest, forKey: .isGuest)
    try container.encode(kind, forKey: .kind)
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
