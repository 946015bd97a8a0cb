/// The version of the protocol that a request is written in.
public struct ProtocolVersion: Hashable, Sendable, CustomStringConvertible {
  /// The number before the point.
  public let major: UInt8
  /// The number behind it.
  public let minor: UInt8

  /// RFC 2326.
  public static let rtsp1 = ProtocolVersion(major: 1, minor: 0)

  /// A version.
  public init(major: UInt8, minor: UInt8) {
    self.major = major
    self.minor = minor
  }

  /// As in a request line.
  public var description: String { "RTSP/\(major).\(minor)" }
}

/// A request, RFC 2326 section 6.
public struct Request: Hashable, Sendable {
  /// What is asked for.
  public var method: RequestMethod
  /// The request URI as it was sent: what a Digest is calculated of. ``RequestTarget`` reads it.
  public var uri: String
  /// Its version.
  public var version: ProtocolVersion
  /// Its header fields.
  public var headers: HeaderFields
  /// What follows the header, `Content-Length` bytes.
  public var body: [UInt8]

  /// The most digits that a `CSeq` may have.
  public static let sequenceNumberDigits = 20

  /// A request; see the properties.
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

  /// `CSeq`, digit for digit as it was sent; nil where it is missing, sent twice, or no number of 1…20 digits.
  public var sequenceNumber: String? { headers.sequenceNumber }
}

extension HeaderFields {
  /// The text of the one `CSeq`, if it is a number.
  var sequenceNumber: String? {
    let values = values(of: "CSeq")
    guard values.count == 1, (1...Request.sequenceNumberDigits).contains(values[0].utf8.count),
      values[0].utf8.allSatisfy(\.isDigit)
    else { return nil }
    return values[0]
  }
}

/// What a client sends on its connection.
public enum ClientMessage: Hashable, Sendable {
  /// A request.
  case request(Request)
  /// Binary data between requests, RFC 2326 section 10.12: RTCP, in practice.
  case interleaved(InterleavedFrame)
}

/// Binary data on an RTSP connection, RFC 2326 section 10.12: `$`, the channel, the length, and that many bytes.
public struct InterleavedFrame: Hashable, Sendable {
  /// Bytes before the payload.
  public static let headerByteCount = 4
  /// What a frame begins with: `$`.
  public static let marker: UInt8 = 0x24

  /// Which stream, as `interleaved=` in `Transport` says.
  public var channel: UInt8
  /// One RTP or RTCP packet.
  public var payload: [UInt8]

  /// A frame.
  public init(channel: UInt8, payload: [UInt8]) {
    self.channel = channel
    self.payload = payload
  }

  /// The four bytes before a payload of `payloadBytes`.
  public static func header(channel: UInt8, payloadBytes: UInt16) -> (UInt8, UInt8, UInt8, UInt8) {
    (marker, channel, UInt8(payloadBytes >> 8), UInt8(truncatingIfNeeded: payloadBytes))
  }
}
