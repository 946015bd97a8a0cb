/// A payload format in a session description: `a=rtpmap`, `a=fmtp` (RFC 8866 sections 6.6 and 6.15) and further
/// attributes.
public struct PayloadDescription: Hashable, Sendable {
  /// The first word of an `m=` line, RFC 8866 section 5.14.
  public enum MediaType: String, Hashable, Sendable {
    /// Pictures.
    case video
    /// Sound.
    case audio
  }

  /// The media type.
  public var mediaType: MediaType
  /// The payload type in the RTP headers.
  public var payloadType: RTPPayloadType
  /// The registered encoding name: `H264`.
  public var encodingName: String
  /// The RTP clock rate in ticks per second.
  public var clockRate: Int64
  /// The number of sound channels; `nil` omits it, as for pictures.
  public var channels: Int?
  /// The parameters of the format (`a=fmtp`); `nil` without any.
  public var parameters: String?
  /// Further attributes, without `a=`: `framerate:30`.
  public var attributes: [String] = []
  /// The answered requests of ``MediaDescription/Profile/avpf(retransmission:)`` beside generic NACK: `nack pli`
  /// (RFC 4585 section 4.2).
  public var feedback: [String] = []

  /// Creates a description; see the properties.
  public init(
    _ mediaType: MediaType, payloadType: RTPPayloadType, encodingName: String,
    clockRate: Int64 = RTPStream.videoClockRate, channels: Int? = nil
  ) {
    self.mediaType = mediaType
    self.payloadType = payloadType
    self.encodingName = encodingName
    self.clockRate = clockRate
    self.channels = channels
  }

  /// Returns the description of pictures: the answered requests of a sender, without parameters.
  static func pictures(_ encodingName: String, _ payloadType: RTPPayloadType) -> PayloadDescription {
    var description = PayloadDescription(.video, payloadType: payloadType, encodingName: encodingName)
    // Picture loss indication (RFC 4585), full intra request (RFC 5104 section 7.1).
    description.feedback = ["nack pli", "ccm fir"]
    return description
  }

  /// The lines from `a=rtpmap` on.
  var lines: [String] {
    let channels = channels.map { "/\($0)" } ?? ""
    var lines = ["a=rtpmap:\(payloadType) \(encodingName)/\(clockRate)\(channels)"]
    if let parameters { lines.append("a=fmtp:\(payloadType) \(parameters)") }
    return lines + attributes.map { "a=\($0)" }
  }
}
