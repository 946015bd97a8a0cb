/// The RTP profile that a client is told of by a session description: RFC 3551's AVP, or AVPF of RFC 4585 with a stream of
/// retransmissions (RFC 4588).
///
/// Clients with live555 (VLC, recorders) and Media3 (Android) refuse a description whose media is `RTP/AVPF`, or of more
/// than one payload type. So AVP is for all, and AVPF for who is known to read it or asks for it. RTCP feedback of any
/// client is answered; one that was told of AVP sends none by itself.
public struct ClientProfile: Hashable, Sendable {
  /// Whether the client reads AVPF with two payload types.
  public let takesFeedback: Bool

  /// What a client's requests begin their `User-Agent` with that reads AVPF.
  static let userAgent = "GStreamer/"

  /// The profile of a client.
  ///
  /// - Parameters:
  ///   - userAgent: The value of `User-Agent`.
  ///   - query: What follows `?` in the URL. `profile=avpf` and `profile=avp` in it go before the user agent; any other
  ///     value says nothing.
  public init(userAgent: String?, query: String?) {
    let asked = query?.split(separator: "&").last { $0.asciiLowercased.hasPrefix("profile=avp") }?.asciiLowercased
    switch asked {
    case "profile=avpf": takesFeedback = true
    case "profile=avp": takesFeedback = false
    default: takesFeedback = userAgent?.hasPrefix(Self.userAgent) ?? false
    }
  }
}
