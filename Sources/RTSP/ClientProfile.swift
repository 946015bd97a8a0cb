/// What a client is told of by a session description: RFC 3551's profile AVP, or AVPF of RFC 4585 with a stream of
/// retransmissions (RFC 4588); with a key for SRTP, or in the clear.
///
/// Clients with live555 (VLC, recorders) and Media3 (Android) refuse a description whose media is `RTP/AVPF`, or of more
/// than one payload type. So AVP is for all, and AVPF for who is known to read it or asks for it. RTCP feedback of any
/// client is answered; one that was told of AVP sends none by itself.
///
/// live555 reads a key, but takes four bytes of each SRTP packet for the identifier of one, whether there is one or not.
/// What it gets within an encrypted connection needs no other protection.
public struct ClientProfile: Hashable, Sendable {
  /// Whether the client reads AVPF with two payload types.
  public let takesFeedback: Bool
  /// Whether the client decrypts SRTP by a key of the description.
  public let takesKey: Bool

  /// What a client's `User-Agent` begins with that reads AVPF.
  private static let feedbackAgent = "GStreamer/"
  /// What a client's `User-Agent` has that is made of live555: `LibVLC/3.0.20 (LIVE555 Streaming Media v2016.11.28)`.
  private static let live555Agent = "LIVE555 Streaming Media"

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
    default: takesFeedback = userAgent?.hasPrefix(Self.feedbackAgent) ?? false
    }
    takesKey = userAgent?.contains(Self.live555Agent) != true
  }
}
