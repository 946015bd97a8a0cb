import Glibc
import NIOCore
import NIOPosix
package import Platform
import Synchronization

/// Serves the control API on a Unix socket, which only its owner and group may use.
///
/// The server runs on one NIO thread and on those of Swift concurrency. None of these threads handles frames. Threads
/// inherit the scheduling of the thread that starts them: start the server before that thread becomes a real-time
/// thread.
package final class ControlServer: Sendable {
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

  /// The socket's path.
  package let path: String
  /// The events of the server.
  package let events = ControlEvents()
  private let serving: ServingTask

  /// Starts to listen at `path`; clients are answered from its return on.
  ///
  /// - Throws: ``ControlSocketError``.
  package init(
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
      // The reason why there is no listener is reported; a new group has nothing else to end.
      try? group.syncShutdownGracefully()
      throw .system(step: "serve", path: path, errorNumber: (error as? IOError)?.errnoCode ?? EIO)
    }
    // No closure can consume a noncopyable value: the one task empties the box.
    let box = Mutex<ListeningSocket?>(socket)
    serving = ServingTask(group) {
      if let socket = box.withLock({ $0.take() }) {
        await service.serve([listener])
        _ = socket
      }
    }
  }

  /// Ends all connections and removes the socket; waits until that is done. Do not call it from the threads of Swift
  /// concurrency.
  package func stop() { serving.stop() }
}
