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

  /// The profile that the stream is sent by.
  public enum Profile: Hashable, Sendable {
    /// RFC 3551: reports only.
    case avp
    /// RFC 4585: receivers may ask for packets and key frames as soon as they need them. For H.264 the description
    /// says which requests are answered: generic NACK, picture loss indication, full intra request (RFC 5104).
    case avpf(retransmission: Retransmission? = nil)
  }

  /// The stream of retransmissions beside the stream itself, RFC 4588 section 8.6.
  public struct Retransmission: Hashable, Sendable {
    /// Its payload type, unlike the stream's.
    public var payloadType: RTPPayloadType
    /// How long a packet can be asked for after it was sent (`rtx-time`); left out where it is unknown.
    public var milliseconds: Int?

    /// A stream of retransmissions.
    public init(payloadType: RTPPayloadType, milliseconds: Int? = nil) {
      self.payloadType = payloadType
      self.milliseconds = milliseconds
    }
  }

  /// How receivers come by the stream.
  public enum Announcement: Hashable, Sendable {
    /// It is sent to ``address`` and ``port`` in any case.
    case plain
    /// They ask for it by RTSP, RFC 2326 appendix C.1. Control URLs are relative to `Content-Base`; where the stream
    /// goes is for SETUP to settle, so a host's address and the port are written as zero, a group's as they are.
    case rtsp
  }

  /// The stream's source, RFC 5576.
  public struct Source: Hashable, Sendable {
    /// Its identifier.
    public var ssrc: UInt32
    /// The name that it has in RTCP.
    public var canonicalName: String

    /// A source.
    public init(ssrc: UInt32, canonicalName: String) {
      self.ssrc = ssrc
      self.canonicalName = canonicalName
    }
  }

  /// The control URL of the one stream, relative to the presentation's.
  public static let track = "trackID=0"

  /// What the stream carries.
  public var payload: Payload
  /// The profile that it is sent by.
  public var profile: Profile
  /// How receivers come by it.
  public var announcement: Announcement
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

  /// Whether RTCP shares RTP's port: `a=rtcp-mux`, RFC 5761 section 5.1.1.
  public var multiplexesControl = false
  /// The one sender that receivers join the group for: `a=source-filter`, RFC 4570; nil where any may send.
  public var sourceFilter: ConnectionAddress?
  /// The values of `a=crypto`, RFC 4568: the stream is protected where there are any. They hold keys; who may read the
  /// description can see the stream.
  public var cryptography: [String] = []
  /// Messages of MIKEY in base64, `a=key-mgmt` (RFC 4567): the stream is protected where there are any. They hold keys.
  public var keyManagement: [String] = []
  /// The stream's source; left out where it is unknown.
  public var source: Source?

  /// The longest name that is written, bytes of UTF-8.
  public static let textLimit = 128

  /// A description; see the properties.
  public init(
    payload: Payload, profile: Profile = .avp, announcement: Announcement = .plain, address: ConnectionAddress,
    port: UInt16, timeToLive: UInt8 = 1,
    origin: ConnectionAddress? = nil, sessionID: UInt64, version: UInt64 = 1, name: String = "nightjar",
    tool: String = "nightjar", frameRate: FrameRate? = nil, kilobitsPerSecond: Int? = nil
  ) {
    self.payload = payload
    self.profile = profile
    self.announcement = announcement
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
      "c=IN \(address.family.rawValue) \(connection)",
      "t=0 0",
    ]
    let program = Self.printable(tool)
    if !program.isEmpty { lines.append("a=tool:\(program)") }
    if let sourceFilter {
      lines.append("a=source-filter: incl IN \(address.family.rawValue) \(address) \(sourceFilter)")
    }
    lines.append("a=recvonly")
    if announcement == .rtsp { lines += ["a=control:*", "a=range:npt=now-"] }
    lines.append(mediaLine)
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
    if multiplexesControl { lines.append("a=rtcp-mux") }
    lines += cryptography.map { "a=crypto:\($0)" }
    lines += keyManagement.map { "a=key-mgmt:mikey \($0)" }
    if let source { lines.append("a=ssrc:\(source.ssrc) cname:\(source.canonicalName)") }
    lines += feedbackLines
    if announcement == .rtsp { lines.append("a=control:\(Self.track)") }
    return lines.map { $0 + "\r\n" }.joined()
  }

  private var isProtected: Bool { !cryptography.isEmpty || !keyManagement.isEmpty }

  private var mediaLine: String {
    let port = isSettledBySetup ? 0 : port
    let profileName =
      switch profile {
      case .avp: isProtected ? "RTP/SAVP" : "RTP/AVP"
      case .avpf: isProtected ? "RTP/SAVPF" : "RTP/AVPF"
      }
    let retransmissionType = retransmission.map { " \($0.payloadType)" } ?? ""
    return "m=video \(port) \(profileName) \(payloadType)\(retransmissionType)"
  }

  /// RFC 4585 section 4.2, RFC 5104 section 7.1, RFC 4588 section 8.6.
  private var feedbackLines: [String] {
    guard case .avpf = profile else { return [] }
    var lines = ["a=rtcp-fb:\(payloadType) nack"]
    if case .h264 = payload {
      lines += ["a=rtcp-fb:\(payloadType) nack pli", "a=rtcp-fb:\(payloadType) ccm fir"]
    }
    if let retransmission {
      let time = retransmission.milliseconds.map { ";rtx-time=\($0)" } ?? ""
      lines += [
        "a=rtpmap:\(retransmission.payloadType) rtx/\(RTPStream.clockRate)",
        "a=fmtp:\(retransmission.payloadType) apt=\(payloadType)\(time)",
      ]
    }
    return lines
  }

  private var retransmission: Retransmission? {
    if case .avpf(let retransmission) = profile { retransmission } else { nil }
  }

  /// Whether SETUP settles where the stream goes.
  private var isSettledBySetup: Bool { announcement == .rtsp && !address.isMulticast }

  /// The address in `c=`.
  private var connection: String {
    if isSettledBySetup { return address.family == .ip4 ? "0.0.0.0" : "::" }
    return address.family == .ip4 && address.isMulticast ? "\(address)/\(timeToLive)" : "\(address)"
  }

  private var payloadType: RTPPayloadType {
    switch payload {
    case .h264(_, let payloadType): payloadType
    case .transportStream: .transportStream
    }
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
