/// The client behind a stream's viewer: how it is connected, from where, and who has logged in.
public struct ViewerPeer: Hashable, Sendable {
  /// What carries the stream to a viewer.
  public enum Transport: String, Codable, CaseIterable, Hashable, Sendable {
    /// RTP in datagrams to the viewer's own address.
    case udp
    /// RTP interleaved with RTSP on one TCP connection (RFC 2326 section 10.12).
    case tcp
    /// RTP in datagrams to a multicast group.
    case multicast
    /// JPEG pictures by plain HTTP.
    case http
    /// JPEG pictures by HTTP within TLS.
    case https
    /// JPEG pictures by the control socket of this machine.
    case unix
  }

  /// What carries the stream.
  public var transport: Transport
  /// The viewer's or the group's numeric address, without brackets; nil for a Unix socket.
  public var address: String?
  /// The UDP port of RTP, or the client's TCP port; nil where there is none.
  public var port: Int?
  /// The user or token that has logged in; nil where nobody has.
  public var user: String?
  /// Whether the stream is encrypted on its way, by SRTP or TLS.
  public var isEncrypted: Bool

  /// Creates a peer; a Unix socket has neither address nor port.
  public init(
    _ transport: Transport, address: String? = nil, port: Int? = nil, user: String? = nil, isEncrypted: Bool = false
  ) {
    (self.transport, self.address, self.port) = (transport, address, port)
    (self.user, self.isEncrypted) = (user, isEncrypted)
  }

  /// Address, port and user for a person: `192.168.1.20:50000, anna`, `[fe80::1]:50000`, or `this machine`.
  public var place: String {
    let host = address.map { $0.contains(":") ? "[\($0)]" : $0 } ?? "this machine"
    return host + (port.map { ":\($0)" } ?? "") + (user.map { ", \($0)" } ?? "")
  }
}
