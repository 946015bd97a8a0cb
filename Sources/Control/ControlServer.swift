import Glibc
public import Media
import NIOCore
import NIOPosix
import Synchronization

/// Serves the control API on a Unix socket, which its owner and group alone may use.
///
/// It runs on one thread of NIO and on those of Swift concurrency, none of which is on a frame's way. Threads inherit the
/// scheduling of the one that starts them: start it before that one becomes a real-time thread.
public final class ControlServer: Sendable {
  /// How much clients may ask for.
  public struct Limits: Sendable {
    /// The largest body of a request in bytes; the rest is never stored.
    public var body = 4096
    /// For a request from its first byte to its answer, for the next one to begin, and for each ``OutputProgress/piece`` that
    /// leaves.
    public var requestTime = MediaTime(seconds: 10)
    /// Connections at a time; one more is told so and closed.
    public var connections = 16

    /// Of these, those of one address (IPv6: its first 64 bits), where they come over the network.
    public var connectionsPerAddress = 16

    /// How many of `connections` may be streams of pictures, which do not end: a quarter is kept for short requests, perhaps by
    /// the same proxy.
    static func streams(of connections: Int) -> Int { connections - connections / 4 }

    /// The usual ones.
    public init() {}

    /// Those for clients that come over the network.
    public static var network: Limits {
      var limits = Limits()
      limits.connections = 64
      // Behind a proxy, everybody is one address.
      limits.connectionsPerAddress = 32
      return limits
    }
  }

  /// The socket's path.
  public let path: String
  /// What happened.
  public let events = ControlEvents()
  private let serving: ServingTask

  /// Begins to listen at `path`; clients are answered from its return on.
  ///
  /// - Throws: ``ControlSocketError``.
  public init(
    path: String = ControlSocket.defaultPath, limits: Limits = Limits(), target: any ControlTarget
  ) throws(ControlSocketError) {
    let socket = try ListeningSocket(path: path, backlog: CInt(limits.connections))
    self.path = path
    let group = MultiThreadedEventLoopGroup(numberOfThreads: 1)
    let service = ControlService(
      api: ControlAPI(target: target, bodyLimit: limits.body, namesFiles: true), limits: limits,
      admission: .group(socket.group, events))
    let listener: any Channel
    do {
      listener = try service.bootstrap(group).withBoundSocket(socket.descriptor).wait()
    } catch {
      // Why there is no listener is what is told; a group that was made a moment ago has nothing else to end.
      try? group.syncShutdownGracefully()
      throw .system(step: "serve", path: path, errorNumber: (error as? IOError)?.errnoCode ?? EIO)
    }
    // A noncopyable value is no closure's to consume: the box is emptied by the one task.
    let box = Mutex<ListeningSocket?>(socket)
    serving = ServingTask(group) {
      if let socket = box.withLock({ $0.take() }) {
        await service.serve([listener])
        _ = socket
      }
    }
  }

  /// Ends all connections and removes the socket; waits until that is done. Not for the threads of Swift concurrency.
  public func stop() { serving.stop() }
}
