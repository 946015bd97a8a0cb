package import Media
import NIOHTTP1
package import Platform

/// A client of the ``HTTPServer`` at a Unix socket: one connection for each request; each call waits for its answer.
///
/// Every call throws ``ControlClientError``, ``ControlSocketError`` for an impossible path, and ``ControlFailure`` for
/// a refusal by the server.
package struct ControlClient: Sendable {
  /// An answer and its JSON, which may contain more than this client knows.
  package struct Answer<Value: Sendable>: Sendable {
    /// The decoded value.
    package let value: Value
    /// The server's JSON: one line.
    package let json: [UInt8]
  }

  /// The socket's path.
  package let path: String
  /// The camera of the requests; nil for the only one.
  package let camera: String?
  let patience: Duration

  /// Creates a client of the socket at `path`; it gives up after `patience`.
  package init(
    path: String = ControlSocket.clientPath, camera: String? = nil, patience: Duration = Duration(seconds: 10)
  ) {
    self.path = path
    self.camera = camera
    self.patience = patience
  }

  /// Returns the state of all cameras and of the program.
  package func status() throws -> Answer<ApplianceStatus> { try ask(.GET, "/v1/status") }

  /// Returns the state of one camera.
  package func status(of camera: String) throws -> Answer<StreamStatus> {
    try ask(.GET, "/v1/cameras/\(Self.encoded(camera))/status")
  }

  /// Returns the viewers of all streams, or of the one camera's.
  package func viewers() throws -> Answer<ViewersAnswer> { try ask(.GET, route("viewers")) }

  /// Makes the server read its configuration again.
  package func reload() throws -> Answer<ReloadAnswer> { try ask(.POST, "/v1/reload") }

  /// Rotates the pictures; returns the orientation that the server applies.
  package func rotate(to orientation: Orientation) throws -> Answer<Orientation> {
    let answer: Answer<OrientationRequest> = try ask(.PUT, route("orientation"), OrientationRequest(orientation))
    return Answer(value: try answer.value.orientation(), json: answer.json)
  }

  /// Requests a key frame.
  package func requestKeyFrame() throws -> Answer<Void> {
    let answer: Answer<KeyFrameAnswer> = try ask(.POST, route("keyframe"))
    return Answer(value: (), json: answer.json)
  }

  /// Sets the bitrate; returns the value that the server applies.
  package func changeBitrate(_ bitsPerSecond: Int) throws -> Answer<Int> {
    let answer: Answer<BitrateRequest> = try ask(.PUT, route("bitrate"), BitrateRequest(bitsPerSecond))
    return Answer(value: answer.value.bitsPerSecond, json: answer.json)
  }

  /// Sends the stream to one more destination; returns the session description for its receivers (SDP).
  package func addDestination(_ url: String) throws -> Answer<String> {
    let answer: Answer<DestinationAnswer> = try ask(.POST, route("destinations"), DestinationRequest(url))
    return Answer(value: answer.value.sessionDescription, json: answer.json)
  }

  /// Ends the stream to a destination.
  package func removeDestination(_ url: String) throws -> Answer<Void> {
    let answer: Answer<DestinationRequest> = try ask(.DELETE, route("destinations"), DestinationRequest(url))
    return Answer(value: (), json: answer.json)
  }

  /// Returns the path of a camera's route.
  func route(_ name: String) -> String {
    camera.map { "/v1/cameras/\(Self.encoded($0))/\(name)" } ?? "/v1/\(name)"
  }

  /// Returns a name encoded as a segment of a path: RFC 3986 section 3.3.
  static func encoded(_ name: String) -> String {
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
