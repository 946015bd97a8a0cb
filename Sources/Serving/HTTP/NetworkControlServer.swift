import NIOCore
import NIOPosix

/// Serves the control API over TCP, within TLS, to users and holders of tokens: HTTPS.
///
/// If there are neither users nor tokens, only this machine may read, and nobody may change anything. The server runs
/// on one NIO thread and on those of Swift concurrency, as ``ControlServer`` does.
package final class NetworkControlServer: Sendable {
  /// The addresses, identity, users, tokens and limits of the server.
  package struct Configuration: Sendable {
    /// The addresses to listen on, all within TLS.
    package var listeners: [TCPListener]
    /// The identity that clients see.
    package var identity: TLSIdentity
    /// The users that may log in by name and password.
    package var users: UsersFile?
    /// The tokens that clients may log in with.
    package var tokens: TokensFile?
    /// The phones that have a log-in of their own.
    package var phones: Phones?
    /// The limits on clients and their requests.
    package var limits: ControlServer.Limits

    /// Creates a configuration for these listeners.
    package init(
      listeners: [TCPListener], identity: TLSIdentity, users: UsersFile? = nil, tokens: TokensFile? = nil,
      phones: Phones? = nil, limits: ControlServer.Limits = .network
    ) {
      (self.listeners, self.identity, self.limits) = (listeners, identity, limits)
      (self.users, self.tokens, self.phones) = (users, tokens, phones)
    }
  }

  /// The listeners, with the ports that the system chose.
  package let listeners: [TCPListener]
  /// The events of the server.
  package var events: ControlEvents { authenticator.events }
  private let authenticator: RequestAuthenticator
  private let serving: ServingTask

  /// Starts to listen; clients are answered from its return on.
  ///
  /// - Throws: `ListenError`; then nothing listens.
  package init(_ configuration: Configuration, target: any ControlTarget) throws {
    let tls = try configuration.identity.serverContext(protocols: ["http/1.1"])
    let group = MultiThreadedEventLoopGroup(numberOfThreads: 1)
    let authenticator = RequestAuthenticator(
      users: configuration.users, tokens: configuration.tokens, phones: configuration.phones)
    let limits = configuration.limits
    let service = ControlService(
      api: ControlAPI(target: target, bodyLimit: limits.body, namesFiles: false), limits: limits,
      admission: .network(authenticator))
    let opened = try service.open(configuration.listeners, group, tls: tls, service: "the control API")
    (self.authenticator, listeners) = (authenticator, opened.map(\.listener))
    let open = opened.map(\.channel)
    serving = ServingTask(group) { await service.serve(open) }
  }

  /// Sets the users and tokens that are admitted: every request is checked against them, also on open connections.
  package func set(users: UsersFile?, tokens: TokensFile?) { authenticator.set(users: users, tokens: tokens) }

  /// Ends all connections; waits until that is done. Do not call it from the threads of Swift concurrency.
  package func stop() { serving.stop() }
}
