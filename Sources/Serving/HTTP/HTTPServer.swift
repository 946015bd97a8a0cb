import NIOCore
import NIOPosix
package import Platform

/// Serves the control API, pictures and sound at one endpoint, to the clients that its access policy admits.
///
/// There are three policies. Over HTTPS, users and holders of tokens have their roles (``RequestAuthenticator``). Over
/// plain HTTP, this machine and users may read, and nobody may change anything (``ReadingAuthenticator``). At a Unix
/// socket, its owner and group may do everything (``GroupAccess``).
///
/// The server runs on one NIO thread and on those of Swift concurrency. None of these threads handles frames. Threads
/// inherit the scheduling of the thread that starts them: start the server before that thread becomes a real-time
/// thread.
package final class HTTPServer: Sendable {
  /// The limits on clients and their requests.
  package struct Limits: Sendable {
    /// The largest body of a request in bytes; the rest is never stored.
    package var body = 4096
    /// The time limit for a request from its first byte to its answer, for the start of the next one, and for each
    /// ``OutputProgress/piece`` that is sent.
    package var requestTime = Duration(seconds: 10)
    /// The largest number of connections at a time; one more gets the reason and is closed.
    package var connections = 16

    /// The largest number of these from one address (IPv6: its first 64 bits), for connections over the network.
    package var connectionsPerAddress = 16

    /// Returns the number of `connections` that may be streams of pictures, which do not end. A quarter is kept for
    /// short requests, perhaps by the same proxy.
    static func streams(of connections: Int) -> Int { connections - connections / 4 }

    /// Creates the usual limits.
    package init() {}

    /// The limits for clients of the network.
    package static var network: Limits {
      var limits = Limits()
      limits.connections = 64
      // Behind a proxy, all clients have one address.
      limits.connectionsPerAddress = 32
      return limits
    }
  }

  /// The addresses, access and limits of a server for the network.
  package struct Configuration: Sendable {
    /// The addresses to listen on.
    package var listeners: [TCPListener]
    /// The identity that clients of HTTPS see. Nil serves plain HTTP, for reading only.
    package var identity: TLSIdentity?
    /// The users that may log in by name and password.
    package var users: UsersFile?
    /// The tokens that clients of HTTPS may log in with.
    package var tokens: TokensFile?
    /// The phones that have a log-in of their own, for HTTPS.
    package var phones: Phones?
    /// The limits on clients and their requests.
    package var limits: Limits

    /// Creates a configuration for these listeners.
    package init(
      listeners: [TCPListener], identity: TLSIdentity? = nil, users: UsersFile? = nil, tokens: TokensFile? = nil,
      phones: Phones? = nil, limits: Limits = .network
    ) {
      (self.listeners, self.identity, self.limits) = (listeners, identity, limits)
      (self.users, self.tokens, self.phones) = (users, tokens, phones)
    }

    fileprivate var access: any AccessPolicy {
      identity == nil
        ? ReadingAuthenticator(users: users) : RequestAuthenticator(users: users, tokens: tokens, phones: phones)
    }
  }

  /// The listeners, with the ports that the system chose; none at a Unix socket.
  package let listeners: [TCPListener]
  /// The events of the server.
  package var events: ControlEvents { access.events }
  private let access: any AccessPolicy
  private let serving: ServingTask

  /// Creates a server that ``serving`` runs.
  init(_ access: any AccessPolicy, listeners: [TCPListener] = [], serving: ServingTask) {
    (self.access, self.listeners, self.serving) = (access, listeners, serving)
  }

  /// Starts to listen; clients are answered from its return on.
  ///
  /// - Throws: `ListenError`; then nothing listens.
  package convenience init(_ configuration: Configuration, target: any ControlTarget) throws {
    let (access, limits) = (configuration.access, configuration.limits)
    let tls = try configuration.identity?.serverContext(protocols: ["http/1.1"])
    let group = MultiThreadedEventLoopGroup(numberOfThreads: 1)
    let service = HTTPService(
      api: ControlAPI(target: target, bodyLimit: limits.body, namesFiles: false), limits: limits, access: access)
    let open = try service.open(
      configuration.listeners, group, tls: tls, service: tls == nil ? "HTTP" : "the control API")
    let channels = open.map(\.channel)
    self.init(
      access, listeners: open.map(\.listener), serving: ServingTask(group) { await service.serve(channels) })
  }

  /// Sets the users and tokens that are admitted: every request is checked against them, also on open connections.
  package func set(users: UsersFile?, tokens: TokensFile?) { access.set(users: users, tokens: tokens) }

  /// Ends all connections, and removes a Unix socket; waits until that is done. Do not call it from the threads of Swift
  /// concurrency.
  package func stop() { serving.stop() }
}
