public import Media

/// What a player must know to receive one RTP stream, as SDP: RFC 8866, and RFC 6184 section 8.2 for H.264.
///
/// It is written for the receivers, hence `a=recvonly` (RFC 8866 section 6.7.1), as VLC writes it too.
public struct SessionDescription: Hashable, Sendable {
  /// What the stream carries.
  public enum Payload: Hashable, Sendable {
    /// H.264 by RFC 6184, packetization-mode 1.
    case h264(ParameterSets, payloadType: RTPPayloadType = .h264)
    /// An MPEG-2 transport stream by RFC 2250, payload type 33.
    case transportStream
  }

  /// What the stream carries.
  public var payload: Payload
  /// Where the stream is sent to: `c=`.
  public var address: ConnectionAddress
  /// The UDP port that it is sent to.
  public var port: UInt16
  /// How many routers a multicast packet may pass; written for IPv4 groups only (RFC 8866 section 5.7).
  public var timeToLive: UInt8
  /// Who made the description: `o=`.
  public var origin: ConnectionAddress
  /// A number that no other session from this origin has; by custom the seconds of NTP.
  public var sessionID: UInt64
  /// Larger whenever the description has changed.
  public var version: UInt64
  /// The session's name, for people. Control characters become spaces, and it is cut at ``textLimit``.
  public var name: String
  /// The program's name and version, for people; treated like ``name``; left out where it is empty.
  public var tool: String
  /// Frames a second, H.264 only; left out where it is unknown.
  public var frameRate: FrameRate?
  /// Kilobits a second with IP, UDP and RTP headers (`b=AS`, RFC 8866 section 5.8); left out where it is unknown.
  public var kilobitsPerSecond: Int?

  /// The longest name that is written, bytes of UTF-8.
  public static let textLimit = 128

  /// A description; see the properties.
  public init(
    payload: Payload, address: ConnectionAddress, port: UInt16, timeToLive: UInt8 = 1,
    origin: ConnectionAddress? = nil, sessionID: UInt64, version: UInt64 = 1, name: String = "nightjar",
    tool: String = "nightjar", frameRate: FrameRate? = nil, kilobitsPerSecond: Int? = nil
  ) {
    self.payload = payload
    self.address = address
    self.port = port
    self.timeToLive = timeToLive
    self.origin = origin ?? (address.family == .ip4 ? .loopback : .loopback6)
    self.sessionID = sessionID
    self.version = version
    self.name = name
    self.tool = tool
    self.frameRate = frameRate
    self.kilobitsPerSecond = kilobitsPerSecond
  }

  /// The description as text, its lines ended by CR LF.
  public var text: String {
    let title = Self.printable(name)
    var lines = [
      "v=0",
      "o=- \(sessionID) \(version) IN \(origin.family.rawValue) \(origin)",
      // An empty name is not allowed; this one stands for none (section 5.3).
      "s=\(title.isEmpty ? "-" : title)",
      "c=IN \(address.family.rawValue) \(address)\(scope)",
      "t=0 0",
    ]
    let program = Self.printable(tool)
    if !program.isEmpty { lines.append("a=tool:\(program)") }
    lines.append("a=recvonly")
    lines.append("m=video \(port) RTP/AVP \(payloadType)")
    if let kilobitsPerSecond, kilobitsPerSecond > 0 { lines.append("b=AS:\(kilobitsPerSecond)") }
    switch payload {
    case .h264(let sets, _):
      lines.append("a=rtpmap:\(payloadType) H264/\(RTPStream.clockRate)")
      lines.append(
        "a=fmtp:\(payloadType) packetization-mode=1;profile-level-id=\(sets.profileLevelID);"
          + "sprop-parameter-sets=\(Base64.encode(sets.sequence)),\(Base64.encode(sets.picture))")
      if let frameRate { lines.append("a=framerate:\(frameRate)") }
    case .transportStream:
      lines.append("a=rtpmap:\(payloadType) MP2T/\(RTPStream.clockRate)")
    }
    return lines.map { $0 + "\r\n" }.joined()
  }

  private var payloadType: RTPPayloadType {
    switch payload {
    case .h264(_, let payloadType): payloadType
    case .transportStream: .transportStream
    }
  }

  private var scope: String {
    address.family == .ip4 && address.isMulticast ? "/\(timeToLive)" : ""
  }

  /// `text` without control characters or line ends, trimmed, and cut at ``textLimit`` between characters.
  private static func printable(_ text: String) -> String {
    var result = ""
    var length = 0
    for scalar in text.unicodeScalars {
      let isLineOrControl =
        switch scalar.properties.generalCategory {
        case .control, .lineSeparator, .paragraphSeparator: true
        default: false
        }
      let character: Unicode.Scalar = isLineOrControl ? " " : scalar
      if result.isEmpty && character == " " { continue }
      length += UTF8.width(character)
      if length > textLimit { break }
      result.unicodeScalars.append(character)
    }
    while result.unicodeScalars.last == " " { result.unicodeScalars.removeLast() }
    return result
  }
}
