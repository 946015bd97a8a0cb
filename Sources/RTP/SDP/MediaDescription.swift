/// The description of one medium in a session description: an `m=` line and its attributes, RFC 8866 section 5.14.
public struct MediaDescription: Hashable, Sendable {
  /// The RTP profile of the stream.
  public enum Profile: Hashable, Sendable {
    /// RFC 3551: reports only.
    case avp
    /// RFC 4585: receivers may request packets and key frames as soon as they need them. The description names the
    /// requests that are answered: generic NACK, and those of ``PayloadDescription/feedback``.
    case avpf(retransmission: Retransmission? = nil)
  }

  /// The retransmission stream beside the stream itself, RFC 4588 section 8.6.
  public struct Retransmission: Hashable, Sendable {
    /// The payload type, different from the stream's.
    public var payloadType: RTPPayloadType
    /// The time for which a packet can be requested after it was sent (`rtx-time`); omitted if unknown.
    public var milliseconds: Int?

    /// Creates a retransmission stream.
    public init(payloadType: RTPPayloadType, milliseconds: Int? = nil) {
      self.payloadType = payloadType
      self.milliseconds = milliseconds
    }
  }

  /// The stream's source, RFC 5576.
  public struct Source: Hashable, Sendable {
    /// The SSRC.
    public var ssrc: UInt32
    /// The CNAME in RTCP.
    public var canonicalName: String

    /// Creates a source.
    public init(ssrc: UInt32, canonicalName: String) {
      self.ssrc = ssrc
      self.canonicalName = canonicalName
    }
  }

  /// The payload of the stream.
  public var payload: PayloadDescription
  /// The RTP profile of the stream.
  public var profile: Profile
  /// The destination's UDP port.
  public var port: UInt16
  /// The bandwidth in kilobits per second with IP, UDP and RTP headers (`b=AS`, RFC 8866 section 5.8); omitted if
  /// unknown.
  public var kilobitsPerSecond: Int?
  /// `true` if RTCP shares RTP's port: `a=rtcp-mux`, RFC 5761 section 5.1.1.
  public var multiplexesControl = false
  /// The values of `a=crypto`, RFC 4568. Any value means that the stream is protected. The values hold keys: whoever
  /// reads the description can watch the stream.
  public var cryptography: [String] = []
  /// The MIKEY messages in base64, `a=key-mgmt` (RFC 4567). Any message means that the stream is protected. The
  /// messages hold keys.
  public var keyManagement: [String] = []
  /// The stream's source; omitted if unknown.
  public var source: Source?

  /// Creates a description; see the properties.
  public init(
    _ payload: PayloadDescription, profile: Profile = .avp, port: UInt16, kilobitsPerSecond: Int? = nil
  ) {
    self.payload = payload
    self.profile = profile
    self.port = port
    self.kilobitsPerSecond = kilobitsPerSecond
  }

  /// Returns the lines of the medium.
  ///
  /// - Parameters:
  ///   - isSettledBySetup: `true` writes no port, because SETUP determines it.
  ///   - control: The relative control URL; `nil` omits it.
  func lines(isSettledBySetup: Bool, control: String?) -> [String] {
    var lines = [mediaLine(port: isSettledBySetup ? 0 : port)]
    if let kilobitsPerSecond, kilobitsPerSecond > 0 { lines.append("b=AS:\(kilobitsPerSecond)") }
    lines += payload.lines
    if multiplexesControl { lines.append("a=rtcp-mux") }
    lines += cryptography.map { "a=crypto:\($0)" }
    lines += keyManagement.map { "a=key-mgmt:mikey \($0)" }
    if let source { lines.append("a=ssrc:\(source.ssrc) cname:\(source.canonicalName)") }
    lines += feedbackLines
    if let control { lines.append("a=control:\(control)") }
    return lines
  }

  private var isProtected: Bool { !cryptography.isEmpty || !keyManagement.isEmpty }

  private func mediaLine(port: UInt16) -> String {
    let profileName =
      switch profile {
      case .avp: isProtected ? "RTP/SAVP" : "RTP/AVP"
      case .avpf: isProtected ? "RTP/SAVPF" : "RTP/AVPF"
      }
    let retransmissionType = retransmission.map { " \($0.payloadType)" } ?? ""
    return "m=\(payload.mediaType.rawValue) \(port) \(profileName) \(payload.payloadType)\(retransmissionType)"
  }

  /// RFC 4585 section 4.2, RFC 4588 section 8.6.
  private var feedbackLines: [String] {
    guard case .avpf = profile else { return [] }
    var lines = (["nack"] + payload.feedback).map { "a=rtcp-fb:\(payload.payloadType) \($0)" }
    if let retransmission {
      let time = retransmission.milliseconds.map { ";rtx-time=\($0)" } ?? ""
      lines += [
        "a=rtpmap:\(retransmission.payloadType) rtx/\(payload.clockRate)",
        "a=fmtp:\(retransmission.payloadType) apt=\(payload.payloadType)\(time)",
      ]
    }
    return lines
  }

  private var retransmission: Retransmission? {
    if case .avpf(let retransmission) = profile { retransmission } else { nil }
  }
}
