import Dispatch
import NIOCore
import NIOPosix

/// A server at work: the thread of NIO that it has, and its end.
final class ServingTask: Sendable {
  private let group: MultiThreadedEventLoopGroup
  private let ended = DispatchSemaphore(value: 0)
  private let task: Task<Void, Never>

  /// Has `body` serve what was opened on `group`, whose end is this one's.
  init(_ group: MultiThreadedEventLoopGroup, _ body: @escaping @Sendable () async -> Void) {
    self.group = group
    task = Task { [ended] in
      await body()
      ended.signal()
    }
  }

  /// Ends all connections; waits until that is done. Not for the threads of Swift concurrency.
  func stop() {
    task.cancel()
    ended.wait()
    // So that a second call returns too.
    ended.signal()
    // Fails where a second call finds it shut down already: then there is nothing to do.
    try? group.syncShutdownGracefully()
  }
}
