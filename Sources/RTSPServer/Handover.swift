import Glibc
import Media
import NIOCore
import NIOPosix
import Streaming
import Synchronization
import Threading

/// Work that send threads leave for the event loop, in order.
///
/// `EventLoop.execute` would take a lock of NIO's that lends no priority: a send thread of real time would wait for an event
/// loop that an ordinary thread has displaced while it held that. The standard library's mutex lends it, and the loop is woken
/// by a descriptor that it reads like any other.
final class Handover: Sendable {
  /// What is to be done there.
  enum Work: Sendable {
    case call(@Sendable () -> Void)
    /// Interleaved packets to write, by what writes those of one viewer: kept apart, because a closure made for each frame
    /// would be an allocation.
    case write(InterleavedBytes, by: @Sendable (InterleavedBytes) -> Void)

    fileprivate func callAsFunction() {
      switch self {
      case .call(let work): work()
      case .write(let bytes, let write): write(bytes)
      }
    }
  }

  /// Nil once nobody will take anything any more.
  private let waiting = Mutex<[Work]?>([])
  private let bell: Interrupt

  /// One that nobody takes anything from yet.
  ///
  /// - Throws: ``SystemFailure`` where the process has no descriptor left.
  init() throws(SystemFailure) { bell = try Interrupt() }

  /// Has `work` done on the event loop. Any thread.
  func put(_ work: @escaping @Sendable () -> Void) { put(.call(work)) }

  /// Has `work` done on the event loop. Any thread.
  func put(_ work: Work) {
    let isFirst = waiting.withLock { waiting in
      waiting?.append(work)
      return waiting?.count == 1
    }
    // Whoever put in the first of those that wait has rung already.
    if isFirst { bell.fire() }
  }

  /// Has the one event loop of `group` do what is put in, until it is shut down. Not for that loop's own thread.
  ///
  /// - Throws: ``SystemFailure``, or what NIO does.
  func attach(to group: any EventLoopGroup) throws {
    // NIO closes what it is given, from when it has a channel for it.
    let descriptor = fcntl(bell.fileDescriptor, F_DUPFD_CLOEXEC, 0)
    guard descriptor >= 0 else { throw SystemFailure("fcntl") }
    let ownership = Ownership()
    do {
      _ = try NIOPipeBootstrap(group: group)
        .channelOption(.recvAllocator, value: FixedSizeRecvByteBufferAllocator(capacity: 64))
        // One read takes all the rings there are.
        .channelOption(.maxMessagesPerRead, value: 1)
        .channelInitializer { [self] channel in
          ownership.isTaken.store(true, ordering: .releasing)
          return channel.eventLoop.makeCompletedFuture {
            try channel.pipeline.syncOperations.addHandler(HandoverHandler(self))
          }
        }
        .takingOwnershipOfDescriptor(input: descriptor).wait()
    } catch {
      if !ownership.isTaken.load(ordering: .acquiring) { close(descriptor) }
      throw error
    }
  }

  /// Exchanges what waits for `empty`, so that neither side allocates.
  fileprivate func take(into empty: inout [Work]) {
    waiting.withLock { waiting in
      guard var full = waiting else { return }
      waiting = nil
      swap(&full, &empty)
      waiting = full
    }
  }

  /// Forgets what waits, and what comes from now on: once the event loop has ended.
  func end() {
    // What they hold may let go of others: not under the lock.
    var forgotten: [Work]?
    waiting.withLock { swap(&$0, &forgotten) }
  }
}

/// Whether NIO has taken a descriptor.
private final class Ownership: Sendable {
  let isTaken = Atomic(false)
}

/// Does what was handed over whenever the bell was rung.
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
