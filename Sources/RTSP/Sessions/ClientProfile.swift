/// The form of the session description for one client. The profile is AVP of RFC 3551, or AVPF of RFC 4585 with a
/// retransmission stream (RFC 4588). The description has a key for SRTP, or none.
///
/// Clients based on live555 (VLC, recorders) and on Media3 (Android) refuse a description whose media is `RTP/AVPF`,
/// or has more than one payload type. All clients therefore get AVP, except for those that are known to read AVPF or
/// request it. The server answers RTCP feedback of any client; a client with AVP sends none by itself.
///
/// live555 reads a key, but takes four bytes of each SRTP packet for a key identifier (MKI), even if there is none.
/// Data on an encrypted connection needs no other protection.
public struct ClientProfile: Hashable, Sendable {
  /// `true` if the client reads AVPF with two payload types.
  public let takesFeedback: Bool
  /// `true` if the client decrypts SRTP by a key in the description.
  public let takesKey: Bool

  /// The starts of the `User-Agent` of clients that read AVPF: GStreamer's, and the receiver's of these libraries.
  private static let feedbackAgents = ["GStreamer/", "nightjar"]
  /// The part of `User-Agent` that marks clients based on live555: `LibVLC/3.0.20 (LIVE555 Streaming Media
  /// v2016.11.28)`.
  private static let live555Agent = "LIVE555 Streaming Media"

  /// Creates the profile of a client.
  ///
  /// - Parameters:
  ///   - userAgent: The value of `User-Agent`.
  ///   - query: The text after `?` in the URL. `profile=avpf` and `profile=avp` in it take precedence over the user
  ///     agent; any other value has no effect.
  public init(userAgent: String?, query: String?) {
    let asked = query?.split(separator: "&").last { $0.asciiLowercased.hasPrefix("profile=avp") }?.asciiLowercased
    switch asked {
    case "profile=avpf": takesFeedback = true
    case "profile=avp": takesFeedback = false
    default: takesFeedback = Self.feedbackAgents.contains { userAgent?.hasPrefix($0) == true }
    }
    takesKey = userAgent?.contains(Self.live555Agent) != true
  }
}
