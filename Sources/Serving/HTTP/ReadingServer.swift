import NIOCore
import NIOPosix

/// Serves pictures, metrics and session descriptions over plain HTTP, for reading only.
///
/// This machine needs no login; others log in as users by Digest, and are refused if there are no users. The server
/// runs on one NIO thread and on those of Swift concurrency, as ``ControlServer`` does.
package final class ReadingServer: Sendable {
  /// The addresses, users and limits of the server.
  package struct Configuration: Sendable {
    /// The addresses to listen on.
    package var listeners: [TCPListener]
    /// The users that may log in.
    package var users: UsersFile?
    /// The limits on clients and their requests.
    package var limits: ControlServer.Limits

    /// Creates a configuration for these listeners.
    package init(
      listeners: [TCPListener], users: UsersFile? = nil, limits: ControlServer.Limits = .network
    ) {
      (self.listeners, self.users, self.limits) = (listeners, users, limits)
    }
  }

  /// The listeners, with the ports that the system chose.
  package let listeners: [TCPListener]
  /// The events of the server.
  package var events: ControlEvents { authenticator.events }
  private let authenticator: ReadingAuthenticator
  private let serving: ServingTask

  /// Starts to listen; clients are answered from its return on.
  ///
  /// - Throws: `ListenError`; then nothing listens.
  package init(_ configuration: Configuration, target: any ControlTarget) throws {
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

  /// Sets the users that may log in: every request is checked against them, also on open connections.
  package func set(users: UsersFile?) { authenticator.set(users: users) }

  /// Ends all connections; waits until that is done. Do not call it from the threads of Swift concurrency.
  package func stop() { serving.stop() }
}
