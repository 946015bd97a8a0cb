public import Credentials
public import Listening
import Media
import NIOCore
import NIOPosix

/// Serves what there is to see over plain HTTP: pictures, figures, session descriptions. Nothing can be changed by it.
///
/// This machine needs no login, others are users by Digest; without users there are no others. It runs on one thread of
/// NIO and on those of Swift concurrency, as ``ControlServer`` does.
public final class ReadingServer: Sendable {
  /// Where it is served, and to whom.
  public struct Configuration: Sendable {
    /// Where it listens.
    public var listeners: [TCPListener]
    /// Who may log in.
    public var users: UsersFile?
    /// How much clients may ask for.
    public var limits: ControlServer.Limits

    /// A server that listens there.
    public init(
      listeners: [TCPListener], users: UsersFile? = nil, limits: ControlServer.Limits = .network
    ) {
      (self.listeners, self.users, self.limits) = (listeners, users, limits)
    }
  }

  /// Where it listens, with the ports that the system chose.
  public let listeners: [TCPListener]
  /// What happened.
  public var events: ControlEvents { authenticator.events }
  private let authenticator: ReadingAuthenticator
  private let serving: ServingTask

  /// Begins to listen; clients are answered from its return on.
  ///
  /// - Throws: `ListenError`; then nothing listens.
  public init(_ configuration: Configuration, target: any ControlTarget) throws {
    let group = MultiThreadedEventLoopGroup(numberOfThreads: 1)
    let authenticator = ReadingAuthenticator(users: configuration.users)
    let limits = configuration.limits
    let service = ControlService(
      api: ControlAPI(target: target, bodyLimit: limits.body, namesFiles: false), limits: limits,
      admission: .reading(authenticator))
    let open = try service.open(configuration.listeners, group, service: "HTTP")
    (self.authenticator, listeners) = (authenticator, open.map(\.listener))
    let channels = open.map(\.channel)
    serving = ServingTask(group) { await service.serve(channels) }
  }

  /// From now on these may: every request is checked anew, also on connections that are open.
  public func set(users: UsersFile?) { authenticator.set(users: users) }

  /// Ends all connections; waits until that is done. Not for the threads of Swift concurrency.
  public func stop() { serving.stop() }
}
