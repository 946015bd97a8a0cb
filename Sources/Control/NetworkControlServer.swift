public import Credentials
public import Listening
import Media
import NIOCore
import NIOPosix

/// Serves the control API over TCP, within TLS, to users and holders of tokens: HTTPS.
///
/// Where there are neither users nor tokens, this machine alone may read, and nobody may change anything. It runs on one
/// thread of NIO and on those of Swift concurrency, as ``ControlServer`` does.
public final class NetworkControlServer: Sendable {
  /// What is served, where and to whom.
  public struct Configuration: Sendable {
    /// Where it listens; all of it within TLS.
    public var listeners: [TCPListener]
    /// What it shows to clients.
    public var identity: TLSIdentity
    /// Who may log in by name and password.
    public var users: UsersFile?
    /// Who may log in by a token.
    public var tokens: TokensFile?
    /// How much clients may ask for.
    public var limits: ControlServer.Limits

    /// A server that listens there.
    public init(
      listeners: [TCPListener], identity: TLSIdentity, users: UsersFile? = nil, tokens: TokensFile? = nil,
      limits: ControlServer.Limits = .network
    ) {
      (self.listeners, self.identity, self.limits) = (listeners, identity, limits)
      (self.users, self.tokens) = (users, tokens)
    }
  }

  /// Where it listens, with the ports that the system chose.
  public let listeners: [TCPListener]
  /// What happened.
  public var events: ControlEvents { authenticator.events }
  private let authenticator: RequestAuthenticator
  private let serving: ServingTask

  /// Begins to listen; clients are answered from its return on.
  ///
  /// - Throws: `ListenError`; then nothing listens.
  public init(_ configuration: Configuration, target: any ControlTarget) throws {
    let tls = try configuration.identity.serverContext(protocols: ["http/1.1"])
    let group = MultiThreadedEventLoopGroup(numberOfThreads: 1)
    let authenticator = RequestAuthenticator(users: configuration.users, tokens: configuration.tokens)
    let limits = configuration.limits
    let service = ControlService(
      api: ControlAPI(target: target, bodyLimit: limits.body, namesFiles: false), limits: limits,
      admission: .network(authenticator))
    let opened = try service.open(configuration.listeners, group, tls: tls, service: "the control API")
    (self.authenticator, listeners) = (authenticator, opened.map(\.listener))
    let open = opened.map(\.channel)
    serving = ServingTask(group) { await service.serve(open) }
  }

  /// From now on these may: every request is checked anew, also on connections that are open.
  public func set(users: UsersFile?, tokens: TokensFile?) { authenticator.set(users: users, tokens: tokens) }

  /// Ends all connections; waits until that is done. Not for the threads of Swift concurrency.
  public func stop() { serving.stop() }
}
