public import Credentials
public import Listening
public import Media
public import SRTP

/// What an RTSP server serves, where, and how much of it.
public struct ServerConfiguration: Sendable {
  /// Where it listens.
  public typealias Listener = TCPListener

  /// The group that all viewers share who ask for multicast.
  public struct Group: Hashable, Sendable {
    /// Its address.
    public var address: String
    /// RTP's port; RTCP's is the next.
    public var port: UInt16
    /// How many routers a packet may pass.
    public var timeToLive: UInt8

    /// A group; see the properties.
    public init(address: String, port: UInt16, timeToLive: UInt8) {
      self.address = address
      self.port = port
      self.timeToLive = timeToLive
    }
  }

  /// One or more places to listen.
  public var listeners: [Listener]
  /// The camera's name: `rtsp://HOST:PORT/camera`.
  public var path = "camera"
  /// Who may watch; nil lets in everybody who can connect.
  public var users: UsersFile?
  /// Whether connections from other machines are closed unread, wherever it listens.
  public var servesThisMachineAlone = false
  /// What encrypted listeners show.
  public var identity: TLSIdentity?
  /// The group for multicast; nil refuses it.
  public var group: Group?
  /// Whether the stream goes to viewers of rtsps alone, and to them within that connection or by SRTP alone.
  public var requiresEncryption = false
  /// What SRTP is offered by to viewers of rtsps (RTP/SAVP and RTP/SAVPF, the key by MIKEY); nil offers none. The group
  /// is protected by it where ``requiresEncryption`` says so, else it is in the clear.
  public var suite: SRTPSuite? = .aes128CounterHMAC80
  /// Sessions at a time.
  public var sessions = 128
  /// Sessions at a time of one address.
  public var sessionsPerAddress = 16
  /// Connections at a time.
  public var connections = 256
  /// Connections at a time of one address.
  public var connectionsPerAddress = 32
  /// How long a request may take to arrive.
  public var requestTime = MediaTime(seconds: 10)
  /// How long a connection may be without a session and without a request.
  public var idleTime = MediaTime(seconds: 60)
  /// How long a viewer of interleaved packets may have so much waiting for it that there is no room for more.
  public var stallTime = MediaTime(seconds: 30)
  /// How long a session lives without a sign of life, in whole seconds.
  public var sessionSeconds = 60

  /// A server that listens there.
  public init(listeners: [Listener]) {
    self.listeners = listeners
  }
}
