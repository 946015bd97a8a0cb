import CLinux
import Glibc
public import Media

/// Descriptors of which many are watched and few are ready: epoll(7), level-triggered. Used by one thread.
public final class DescriptorSet {
  /// What to `poll` for `POLLIN`: readable while one of the descriptors is ready.
  public let fileDescriptor: CInt
  private let readiness: UInt32
  private let events: UnsafeMutableBufferPointer<epoll_event>

  /// What the descriptors of a set are watched for.
  public enum Readiness: Sendable {
    /// There is something to read.
    case input
    /// There is room to write.
    case output
  }

  /// An empty set that is asked for at most `capacity` ready descriptors at a time.
  ///
  /// - Throws: ``SystemFailure`` where the process has no descriptor left.
  public init(_ readiness: Readiness, capacity: Int = 16) throws(SystemFailure) {
    let descriptor = nightjar_epoll()
    guard descriptor >= 0 else { throw SystemFailure("epoll_create1") }
    fileDescriptor = descriptor
    self.readiness = readiness == .input ? nightjar_EPOLLIN : nightjar_EPOLLOUT
    events = .allocate(capacity: max(1, capacity))
  }

  deinit {
    close(fileDescriptor)
    events.deallocate()
  }

  /// Watches `descriptor`, which is ``takeReady(_:)``'s `token` from now on.
  ///
  /// - Throws: ``SystemFailure`` where it is watched already, or the kernel watches no more (`fs.epoll`).
  public func insert(_ descriptor: CInt, token: UInt64) throws(SystemFailure) {
    guard nightjar_epoll_watch(fileDescriptor, descriptor, token, readiness) == 0 else {
      throw SystemFailure("epoll_ctl")
    }
  }

  /// Watches `descriptor` no longer; nothing where it was not watched.
  public func remove(_ descriptor: CInt) {
    _ = nightjar_epoll_forget(fileDescriptor, descriptor)
  }

  /// Gives `body` the tokens of those that are ready, or have an error, without waiting; false where there may be more
  /// than the capacity.
  public func takeReady(_ body: (UInt64) -> Void) -> Bool {
    let count = Int(nightjar_epoll_take(fileDescriptor, events.baseAddress, CInt(events.count)))
    guard count > 0 else { return true }
    for index in 0..<count { body(nightjar_event_token(events.baseAddress.unsafelyUnwrapped + index)) }
    return count < events.count
  }
}
