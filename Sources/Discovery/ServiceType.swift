/// The service types that streams are announced as, by their names in the registry of RFC 6335.
public enum ServiceType: String, CaseIterable, Codable, Hashable, Sendable {
  /// RTSP (RFC 2326).
  case rtsp = "_rtsp._tcp"
  /// RTSP within TLS (RFC 7826 section 4.2).
  case rtsps = "_rtsps._tcp"

  /// The scheme of its URLs.
  public var scheme: String {
    switch self {
    case .rtsp: "rtsp"
    case .rtsps: "rtsps"
    }
  }
}
