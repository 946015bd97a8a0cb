import Glibc
import NIOCore
import NIOPosix
package import Platform
import Streaming
import Synchronization

/// Work that send threads hand to the event loop, in order.
///
/// `EventLoop.execute` would take a lock of NIO's without priority inheritance. A real-time send thread would then wait
/// for an event loop that an ordinary thread has displaced while it held the lock. The standard library's mutex
/// inherits priority, and a descriptor that the loop reads like any other wakes the loop.
package final class Handover: Sendable {
  /// One piece of work.
  enum Work: Sendable {
    case call(@Sendable () -> Void)
    /// Interleaved packets to write, and the function that writes those of one viewer. They are kept apart, because a
    /// closure for each frame would be an allocation.
    case write(InterleavedBytes, by: @Sendable (InterleavedBytes) -> Void)

    fileprivate func callAsFunction() {
      switch self {
      case .call(let work): work()
      case .write(let bytes, let write): write(bytes)
      }
    }
  }

  /// Nil once the event loop has ended.
  private let waiting = Mutex<[Work]?>([])
  private let wakeUp: Interrupt

  /// Creates a handover that is attached to no event loop yet.
  ///
  /// - Throws: ``SystemFailure`` if the process has no descriptor left.
  package init() throws(SystemFailure) { wakeUp = try Interrupt() }

  /// Runs `work` on the event loop. Any thread may call it.
  func put(_ work: @escaping @Sendable () -> Void) { put(.call(work)) }

  /// Runs `work` on the event loop. Any thread may call it.
  func put(_ work: Work) {
    let isFirst = waiting.withLock { waiting in
      waiting?.append(work)
      return waiting?.count == 1
    }
    // The first of the waiting pieces has already woken the loop.
    if isFirst { wakeUp.fire() }
  }

  /// Makes the one event loop of `group` run the work until it is shut down. Do not call it on that loop's own thread.
  ///
  /// - Throws: ``SystemFailure``, or NIO's errors.
  func attach(to group: any EventLoopGroup) throws {
    // NIO closes the descriptor, once it has a channel for it.
    let descriptor = try FileDescriptor(from: "fcntl") { fcntl(wakeUp.fileDescriptor, F_DUPFD_CLOEXEC, 0) }
    let ownership = Ownership()
    do {
      _ = try NIOPipeBootstrap(group: group)
        .channelOption(.recvAllocator, value: FixedSizeRecvByteBufferAllocator(capacity: 64))
        // One read takes all pending wake-ups.
        .channelOption(.maxMessagesPerRead, value: 1)
        .channelInitializer { [self] channel in
          ownership.isTaken.store(true, ordering: .releasing)
          return channel.eventLoop.makeCompletedFuture {
            try channel.pipeline.syncOperations.addHandler(HandoverHandler(self))
          }
        }
        .takingOwnershipOfDescriptor(input: descriptor.number).wait()
    } catch {
      if ownership.isTaken.load(ordering: .acquiring) { _ = descriptor.take() }
      throw error
    }
    _ = descriptor.take()
  }

  /// Exchanges the waiting work for `empty`, so that neither side allocates.
  fileprivate func take(into empty: inout [Work]) {
    waiting.withLock { waiting in
      guard var full = waiting else { return }
      waiting = nil
      swap(&full, &empty)
      waiting = full
    }
  }

  /// Discards the waiting work and all later work: for use after the event loop has ended.
  func end() {
    // Discarded work may release other objects: not under the lock.
    var forgotten: [Work]?
    waiting.withLock { swap(&$0, &forgotten) }
  }
}

/// The ownership of a descriptor: NIO has taken it or not.
private final class Ownership: Sendable {
  let isTaken = Atomic(false)
}

/// Runs the work at each wake-up.
private final class HandoverHandler: ChannelInboundHandler {
  typealias InboundIn = ByteBuffer
  private let handover: Handover
  private var taken: [Handover.Work] = []

  init(_ handover: Handover) { self.handover = handover }

  func channelRead(context: ChannelHandlerContext, data: NIOAny) {
    handover.take(into: &taken)
    for work in taken { work() }
    taken.removeAll(keepingCapacity: true)
  }
}
