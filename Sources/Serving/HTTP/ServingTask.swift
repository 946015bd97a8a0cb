import Dispatch
import NIOCore
import NIOPosix

/// A running server: its NIO thread and its end.
final class ServingTask: Sendable {
  private let group: MultiThreadedEventLoopGroup
  private let ended = DispatchSemaphore(value: 0)
  private let task: Task<Void, Never>

  /// Runs `body`, which serves the listeners of `group`, and takes over the shutdown of `group`.
  init(_ group: MultiThreadedEventLoopGroup, _ body: @escaping @Sendable () async -> Void) {
    self.group = group
    task = Task { [ended] in
      await body()
      ended.signal()
    }
  }

  /// Ends all connections; waits until that is done. Do not call it from the threads of Swift concurrency.
  func stop() {
    task.cancel()
    ended.wait()
    // Lets a second call return too.
    ended.signal()
    // Fails if a second call finds the group shut down already: then there is nothing to do.
    try? group.syncShutdownGracefully()
  }
}
