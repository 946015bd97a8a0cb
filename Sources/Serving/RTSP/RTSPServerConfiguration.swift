package import Platform
package import SRTP

/// The listeners, the users and the limits of an RTSP server.
package struct RTSPServerConfiguration: Sendable {
  /// A listener of the server.
  package typealias Listener = TCPListener

  /// The group that all multicast viewers of a camera share.
  package struct Group: Hashable, Sendable {
    /// The group's address.
    package var address: String
    /// The RTP port; the RTCP port is the next one.
    package var port: UInt16
    /// The number of routers that a packet may pass.
    package var timeToLive: UInt8

    /// Creates a group; see the properties.
    package init(address: String, port: UInt16, timeToLive: UInt8) {
      self.address = address
      self.port = port
      self.timeToLive = timeToLive
    }
  }

  /// The listeners, one or more.
  package var listeners: [Listener]
  /// The users that may watch; nil admits everybody who can connect, unless ``servesThisMachineAlone``.
  package var users: UsersFile?
  /// `true` closes connections from other machines unread, wherever the server listens.
  package var servesThisMachineAlone = false
  /// The identity of encrypted listeners.
  package var identity: TLSIdentity?
  /// `true` restricts pictures to viewers by rtsps, within that connection or by SRTP.
  package var requiresEncryption = false
  /// The SRTP suite that is offered to viewers by rtsps (RTP/SAVP and RTP/SAVPF, the key by MIKEY); nil offers none.
  /// The suite protects groups if ``requiresEncryption`` is `true`; otherwise they are in the clear.
  package var suite: SRTPSuite? = .aes128CounterHMAC80
  /// Sessions at a time, of all cameras together.
  package var sessions = 128
  /// Sessions at a time of one address, of all cameras together.
  package var sessionsPerAddress = 16
  /// Connections at a time.
  package var connections = 256
  /// Connections at a time of one address.
  package var connectionsPerAddress = 32
  /// The time for a request to arrive.
  package var requestTime = Duration(seconds: 10)
  /// The time that a connection may have neither a session nor a request.
  package var idleTime = Duration(seconds: 60)
  /// The time that the answer to PLAY waits for the first picture, if the camera delivers none.
  package var startPatience = Duration(seconds: 2)
  /// The time that a client may take none of its waiting bytes.
  package var stallTime = Duration(seconds: 30)
  /// The longest time for a BYE from the send thread to a connection.
  package var goodbyeTime = Duration.milliseconds(200)
  /// The lifetime of a session without a sign of life, in whole seconds.
  package var sessionSeconds = 60
  /// The time without a sign of life, in whole seconds, after which a session that has no connection any more makes
  /// room for a new one, if room is short. Receiver reports come every five seconds (RFC 3550 section 6.2), and two may
  /// be lost.
  package var silenceSeconds = 15

  /// Creates a configuration for these listeners.
  package init(listeners: [Listener]) {
    self.listeners = listeners
  }
}

/// The reason why an RTSP server does not run.
package enum RTSPServerError: Failure, Hashable {
  /// A camera's name that no URL can contain.
  case name(String)
  /// Two cameras of one name.
  case repeatedName(String)
  /// Two cameras whose multicast groups, or RTCP's port of the one, are the same.
  case sameGroup(String, String, address: String, port: UInt16)

  /// One line for the user at the terminal.
  package var description: String {
    switch self {
    case .name(let name):
      "a camera named \(Self.quoted(name)): no URL can have that; choose letters, digits, '-', '_' and '.', as in nursery"
    case .repeatedName(let name): "two cameras named \(Self.quoted(name)): each needs its own URL; rename one"
    case .sameGroup(let first, let second, let address, let port):
      "the cameras \(Self.quoted(first)) and \(Self.quoted(second)) want the same multicast group \(address), port "
        + "\(port): give each its own group, or ports that are at least four apart: two for the picture, two for the sound"
    }
  }

  private static func quoted(_ name: String) -> String { "'\(AttributeFile.printable(name))'" }

  /// The failure's kind.
  package var kind: FailureKind {
    .usage
  }
}
