public import Media
import NIOHTTP1

/// Asks a ``ControlServer``: one connection a request, each call waits for its answer.
///
/// Every call throws ``ControlClientError``, ``ControlSocketError`` for an impossible path, and ``ControlFailure`` as the
/// server says.
public struct ControlClient: Sendable {
  /// An answer, and the JSON that it was, which may say more than this client knows.
  public struct Answer<Value: Sendable>: Sendable {
    /// What it says.
    public let value: Value
    /// As the server gave it: one line.
    public let json: [UInt8]
  }

  /// The socket's path.
  public let path: String
  /// The camera that is meant; nil for the only one.
  public let camera: String?
  let patience: MediaTime

  /// A client of the socket at `path`; gives up after `patience`.
  public init(
    path: String = ControlSocket.clientPath, camera: String? = nil, patience: MediaTime = MediaTime(seconds: 10)
  ) {
    self.path = path
    self.camera = camera
    self.patience = patience
  }

  /// How all cameras are, and the program itself.
  public func status() throws -> Answer<BoxStatus> { try ask(.GET, "/v1/status") }

  /// How the one camera is.
  public func status(of camera: String) throws -> Answer<StreamStatus> {
    try ask(.GET, "/v1/cameras/\(Self.encoded(camera))/status")
  }

  /// Who gets the streams, or the one camera's.
  public func viewers() throws -> Answer<ViewersAnswer> { try ask(.GET, route("viewers")) }

  /// Has the configuration read again.
  public func reload() throws -> Answer<ReloadAnswer> { try ask(.POST, "/v1/reload") }

  /// Lays pictures so from now on; what the server took.
  public func rotate(to orientation: Orientation) throws -> Answer<Orientation> {
    let answer: Answer<OrientationRequest> = try ask(.PUT, route("orientation"), OrientationRequest(orientation))
    return Answer(value: try answer.value.orientation(), json: answer.json)
  }

  /// Asks for a key frame.
  public func requestKeyFrame() throws -> Answer<Void> {
    let answer: Answer<KeyFrameAnswer> = try ask(.POST, route("keyframe"))
    return Answer(value: (), json: answer.json)
  }

  /// Encodes at so many bits a second from now on; what the server took.
  public func changeBitrate(_ bitsPerSecond: Int) throws -> Answer<Int> {
    let answer: Answer<BitrateRequest> = try ask(.PUT, route("bitrate"), BitrateRequest(bitsPerSecond))
    return Answer(value: answer.value.bitsPerSecond, json: answer.json)
  }

  /// Sends the stream to one more destination; what its receivers must know (SDP).
  public func addDestination(_ url: String) throws -> Answer<String> {
    let answer: Answer<DestinationAnswer> = try ask(.POST, route("destinations"), DestinationRequest(url))
    return Answer(value: answer.value.sessionDescription, json: answer.json)
  }

  /// Ends the stream to a destination.
  public func removeDestination(_ url: String) throws -> Answer<Void> {
    let answer: Answer<DestinationRequest> = try ask(.DELETE, route("destinations"), DestinationRequest(url))
    return Answer(value: (), json: answer.json)
  }

  /// The path of something that is a camera's.
  func route(_ name: String) -> String {
    camera.map { "/v1/cameras/\(Self.encoded($0))/\(name)" } ?? "/v1/\(name)"
  }

  /// A segment of a path: RFC 3986 section 3.3.
  private static func encoded(_ name: String) -> String {
    name.utf8.map { byte in
      switch byte {
      case UInt8(ascii: "a")...UInt8(ascii: "z"), UInt8(ascii: "A")...UInt8(ascii: "Z"),
        UInt8(ascii: "0")...UInt8(ascii: "9"), UInt8(ascii: "-"), UInt8(ascii: "_"), UInt8(ascii: "."):
        String(Character(Unicode.Scalar(byte)))
      default: "%" + (byte < 16 ? "0" : "") + String(byte, radix: 16, uppercase: true)
      }
    }.joined()
  }
}
