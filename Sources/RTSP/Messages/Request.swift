/// The RTSP version of a request.
public struct ProtocolVersion: Hashable, Sendable, CustomStringConvertible {
  /// The number before the point.
  public let major: UInt8
  /// The number after the point.
  public let minor: UInt8

  /// RTSP 1.0, RFC 2326.
  public static let rtsp1 = ProtocolVersion(major: 1, minor: 0)

  /// Creates a version.
  public init(major: UInt8, minor: UInt8) {
    self.major = major
    self.minor = minor
  }

  /// The version as written in a request line.
  public var description: String { "RTSP/\(major).\(minor)" }
}

/// A request, RFC 2326 section 6.
public struct Request: Hashable, Sendable {
  /// The method.
  public var method: RequestMethod
  /// The request URI as it was sent, the input of a Digest. ``RequestTarget`` parses it.
  public var uri: String
  /// The RTSP version.
  public var version: ProtocolVersion
  /// The header fields.
  public var headers: HeaderFields
  /// The body: `Content-Length` bytes after the header.
  public var body: [UInt8]

  /// The maximum number of digits of a `CSeq`.
  public static let sequenceNumberDigits = 20

  /// Creates a request; see the properties.
  public init(
    _ method: RequestMethod, _ uri: String, version: ProtocolVersion = .rtsp1, headers: HeaderFields = [],
    body: [UInt8] = []
  ) {
    self.method = method
    self.uri = uri
    self.version = version
    self.headers = headers
    self.body = body
  }

  /// The `CSeq`, digit for digit as it was sent; `nil` if it is missing, sent twice, or no number of 1…20 digits.
  public var sequenceNumber: String? { headers.sequenceNumber }
}

extension HeaderFields {
  /// The text of the only `CSeq`, if it is a number.
  var sequenceNumber: String? {
    let values = values(of: "CSeq")
    guard values.count == 1, (1...Request.sequenceNumberDigits).contains(values[0].utf8.count),
      values[0].utf8.allSatisfy(\.isDigit)
    else { return nil }
    return values[0]
  }
}

/// A message that a client sends on its connection.
public enum ClientMessage: Hashable, Sendable {
  /// A request.
  case request(Request)
  /// Binary data between requests, RFC 2326 section 10.12: in practice, RTCP.
  case interleaved(InterleavedFrame)
}

/// Binary data on an RTSP connection, RFC 2326 section 10.12: `$`, the channel, the length, and that many bytes.
public struct InterleavedFrame: Hashable, Sendable {
  /// The number of bytes before the payload.
  public static let headerByteCount = 4
  /// The first byte of a frame: `$`.
  public static let marker: UInt8 = 0x24

  /// The channel of the stream, as in `interleaved=` of `Transport`.
  public var channel: UInt8
  /// One RTP or RTCP packet.
  public var payload: [UInt8]

  /// Creates a frame.
  public init(channel: UInt8, payload: [UInt8]) {
    self.channel = channel
    self.payload = payload
  }

  /// Returns the four bytes before a payload of `payloadBytes`.
  public static func header(channel: UInt8, payloadBytes: UInt16) -> (UInt8, UInt8, UInt8, UInt8) {
    (marker, channel, UInt8(payloadBytes >> 8), UInt8(truncatingIfNeeded: payloadBytes))
  }
}
