public import Credentials
public import Listening
public import Media
public import SRTP

/// Where an RTSP server listens, to whom it listens, and how much it takes.
public struct ServerConfiguration: Sendable {
  /// Where it listens.
  public typealias Listener = TCPListener

  /// The group that all viewers of a camera share who ask for multicast.
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
  /// Who may watch; nil lets in everybody who can connect, unless ``servesThisMachineAlone``.
  public var users: UsersFile?
  /// Whether connections from other machines are closed unread, wherever it listens.
  public var servesThisMachineAlone = false
  /// What encrypted listeners show.
  public var identity: TLSIdentity?
  /// Whether pictures go to viewers of rtsps alone, and to them within that connection or by SRTP alone.
  public var requiresEncryption = false
  /// What SRTP is offered by to viewers of rtsps (RTP/SAVP and RTP/SAVPF, the key by MIKEY); nil offers none. Groups are
  /// protected by it where ``requiresEncryption`` says so, else they are in the clear.
  public var suite: SRTPSuite? = .aes128CounterHMAC80
  /// Sessions at a time, of all cameras together.
  public var sessions = 128
  /// Sessions at a time of one address, of all cameras together.
  public var sessionsPerAddress = 16
  /// Connections at a time.
  public var connections = 256
  /// Connections at a time of one address.
  public var connectionsPerAddress = 32
  /// How long a request may take to arrive.
  public var requestTime = MediaTime(seconds: 10)
  /// How long a connection may be without a session and without a request.
  public var idleTime = MediaTime(seconds: 60)
  /// How long a client may take nothing of what waits for it.
  public var stallTime = MediaTime(seconds: 30)
  /// How long a session lives without a sign of life, in whole seconds.
  public var sessionSeconds = 60

  /// A server that listens there.
  public init(listeners: [Listener]) {
    self.listeners = listeners
  }
}

/// Why an RTSP server does not run.
public enum ServerError: Failure {
  /// A camera's name that no URL can have.
  case name(String)
  /// Two cameras of one name.
  case repeatedName(String)
  /// Two cameras whose multicast groups, or RTCP's port of the one, are the same.
  case sameGroup(String, String, address: String, port: UInt16)

  /// One line for the person at the terminal.
  public var description: String {
    switch self {
    case .name(let name):
      "a camera named \(Self.quoted(name)): no URL can have that; choose letters, digits, '-', '_' and '.', as in nursery"
    case .repeatedName(let name): "two cameras named \(Self.quoted(name)): each has a URL of its own; rename one"
    case .sameGroup(let first, let second, let address, let port):
      "the cameras \(Self.quoted(first)) and \(Self.quoted(second)) want the same multicast group \(address), port "
        + "\(port): give each a group of its own, or ports that are two apart at least"
    }
  }

  private static func quoted(_ name: String) -> String { "'\(AttributeFile.printable(name))'" }

  /// What kind of failure it is.
  public var kind: FailureKind {
    .usage
  }
}
