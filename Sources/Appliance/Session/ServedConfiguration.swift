import Serving

/// The configuration of a server, as far as ``ServerTable`` decides by it.
protocol ServedConfiguration: Sendable {
  /// The addresses to listen on by TCP.
  var listeners: [TCPListener] { get }
  /// Returns `true` if one server serves both configurations, apart from users and tokens.
  func isServedAlike(_ other: Self) -> Bool
  /// Returns the names of the lists of clients that differ.
  func accessChanges(from other: Self) -> [String]
  /// Takes over the users and tokens of another configuration.
  mutating func takeAccess(of other: Self)
}

extension RTSPServerConfiguration: ServedConfiguration {
  func isServedAlike(_ other: Self) -> Bool {
    listeners == other.listeners && requiresEncryption == other.requiresEncryption && suite == other.suite
      && sessions == other.sessions && TLSIdentity.areSame(identity, other.identity)
  }

  func accessChanges(from other: Self) -> [String] { users?.users != other.users?.users ? ["users"] : [] }

  mutating func takeAccess(of other: Self) {
    (users, servesThisMachineAlone) = (other.users, other.servesThisMachineAlone)
  }
}

extension HTTPServer.Configuration: ServedConfiguration {
  func isServedAlike(_ other: Self) -> Bool {
    listeners == other.listeners && TLSIdentity.areSame(identity, other.identity)
  }

  func accessChanges(from other: Self) -> [String] {
    (users?.users != other.users?.users ? ["users"] : []) + (tokens != other.tokens ? ["tokens"] : [])
  }

  mutating func takeAccess(of other: Self) { (users, tokens) = (other.users, other.tokens) }
}

extension PeerServer.Configuration: ServedConfiguration {
  /// Empty: the server takes over its former sockets, and starts without TCP where another program has the port.
  var listeners: [TCPListener] { [] }

  func isServedAlike(_ other: Self) -> Bool { self == other }

  func accessChanges(from other: Self) -> [String] { [] }

  mutating func takeAccess(of other: Self) {}
}

extension TLSIdentity {
  /// Returns `true` if clients receive the same certificates, including those of the chain, or none of both.
  fileprivate static func areSame(_ one: TLSIdentity?, _ other: TLSIdentity?) -> Bool {
    one?.certificates == other?.certificates && one?.privateKey == other?.privateKey
  }
}
