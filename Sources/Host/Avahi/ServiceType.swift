/// A service type of streams, by its name in the registry of RFC 6335.
package enum ServiceType: String, CaseIterable, Codable, Hashable, Sendable {
  /// RTSP (RFC 2326).
  case rtsp = "_rtsp._tcp"
  /// RTSP within TLS (RFC 7826 section 4.2).
  case rtsps = "_rtsps._tcp"

  /// The URL scheme of the service.
  package var scheme: String {
    switch self {
    case .rtsp: "rtsp"
    case .rtsps: "rtsps"
    }
  }
}
