import Dispatch
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
    /// Until a request must be there and answered, from the connection's start or the last answer.
    public var requestTime = MediaTime(seconds: 10)
    /// Connections at a time; one more is told so and closed.
    public var connections = 16

    /// The usual ones.
    public init() {}
  }

  /// The socket's path.
  public let path: String
  private let group: MultiThreadedEventLoopGroup
  private let ended = DispatchSemaphore(value: 0)
  private let serving: Task<Void, Never>

  /// Begins to listen at `path`; clients are answered from its return on.
  ///
  /// - Throws: ``ControlSocketError``.
  public init(
    path: String = ControlSocket.defaultPath, limits: Limits = Limits(), target: any ControlTarget
  ) throws(ControlSocketError) {
    let socket = try ListeningSocket(path: path, backlog: CInt(limits.connections))
    self.path = path
    group = MultiThreadedEventLoopGroup(numberOfThreads: 1)
    let service = ControlService(
      api: ControlAPI(target: target, bodyLimit: limits.body), limits: limits, permittedGroup: socket.group)
    // A noncopyable value is no closure's to consume: the box is emptied by the one task.
    let box = Mutex<ListeningSocket?>(socket)
    let result = Beginning()
    serving = Task { [group, ended] in
      if let socket = box.withLock({ $0.take() }) { await service.serve(socket, group) { result.tell($0) } }
      ended.signal()
    }
    let errorNumber = result.wait()
    guard errorNumber == 0 else {
      stop()
      throw .system(step: "serve", path: path, errorNumber: errorNumber)
    }
  }

  /// Ends all connections and removes the socket; waits until that is done. Not for the threads of Swift concurrency.
  public func stop() {
    serving.cancel()
    ended.wait()
    // So that a second call returns too.
    ended.signal()
    // Fails where a second call finds it shut down already: then there is nothing to do.
    try? group.syncShutdownGracefully()
  }
}

/// Whether the accept loop has begun, from its task to whoever starts it.
private final class Beginning: Sendable {
  private let errorNumber = Mutex<CInt>(0)
  private let told = DispatchSemaphore(value: 0)

  func tell(_ errorNumber: CInt) {
    self.errorNumber.withLock { $0 = errorNumber }
    told.signal()
  }

  func wait() -> CInt {
    told.wait()
    return errorNumber.withLock { $0 }
  }
}
