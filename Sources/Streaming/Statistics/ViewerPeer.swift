package import Platform

/// The client behind a stream's viewer: its connection, its address, and its login.
package struct ViewerPeer: Hashable, Sendable {
  /// The transport of the stream to a viewer.
  package enum Transport: String, Codable, CaseIterable, Hashable, Sendable {
    /// RTP in datagrams to the viewer's own address.
    case udp
    /// RTP interleaved with RTSP on one TCP connection (RFC 2326 section 10.12).
    case tcp
    /// RTP in datagrams to a multicast group.
    case multicast
    /// SRTP to a browser (WebRTC).
    case webrtc
    /// JPEG pictures or MP3 by plain HTTP.
    case http
    /// JPEG pictures or MP3 by HTTP within TLS.
    case https
    /// JPEG pictures or MP3 by the control socket of this host.
    case unix
  }

  /// The transport of the stream.
  package var transport: Transport
  /// The viewer's or the group's numeric address, without brackets; nil for a Unix socket.
  package var address: String?
  /// The UDP port of RTP, or the client's TCP port; nil where there is none.
  package var port: Int?
  /// The user or token that has logged in; nil where there was no login.
  package var user: String?
  /// `true` if the stream is encrypted on its way, by SRTP or TLS.
  package var isEncrypted: Bool
  /// The time since which the client watches.
  package let since: Instant

  /// Creates a peer of now; a Unix socket has neither address nor port.
  package init(
    _ transport: Transport, address: String? = nil, port: Int? = nil, user: String? = nil, isEncrypted: Bool = false
  ) {
    (self.transport, self.address, self.port) = (transport, address, port)
    (self.user, self.isEncrypted) = (user, isEncrypted)
    since = .now()
  }

  /// Address and user for a person, of whom each request comes from another port.
  package var person: String { (address ?? "this host") + (user.map { ", \($0)" } ?? "") }

  /// Address, port and user for a person: `192.168.1.20:50000, anna`, `[fe80::1]:50000`, or `this host`.
  package var place: String {
    let host = address.map(IPAddress.bracketed) ?? "this host"
    return host + (port.map { ":\($0)" } ?? "") + (user.map { ", \($0)" } ?? "")
  }
}
