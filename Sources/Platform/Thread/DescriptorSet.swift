import CLinux
import Glibc

/// A set of descriptors of which many are watched and few are ready: epoll(7), level-triggered. One thread uses it.
package final class DescriptorSet {
  private let descriptor: FileDescriptor
  /// The descriptor to `poll` for `POLLIN`: readable while one of the descriptors is ready.
  package let fileDescriptor: CInt
  private let readiness: UInt32
  private let events: UnsafeMutableBufferPointer<epoll_event>

  /// The condition for which the descriptors of a set are watched.
  package enum Readiness: Sendable {
    /// Input is available.
    case input
    /// Output is possible.
    case output
  }

  /// Creates an empty set that returns at most `capacity` ready descriptors at a time.
  ///
  /// - Throws: ``SystemFailure`` where the process has no descriptor left.
  package init(_ readiness: Readiness, capacity: Int = 16) throws(SystemFailure) {
    let made = try FileDescriptor(from: "epoll_create1", nightjar_epoll)
    fileDescriptor = made.number
    descriptor = made
    self.readiness = readiness == .input ? nightjar_EPOLLIN : nightjar_EPOLLOUT
    events = .allocate(capacity: max(1, capacity))
  }

  deinit {
    events.deallocate()
  }

  /// Starts watching `descriptor`, for which ``takeReady(_:)`` returns `token`.
  ///
  /// - Throws: ``SystemFailure`` where it is watched already, or the kernel watches no more (`fs.epoll`).
  package func insert(_ descriptor: CInt, token: UInt64) throws(SystemFailure) {
    try syscall("epoll_ctl") { nightjar_epoll_watch(fileDescriptor, descriptor, token, readiness) }
  }

  /// Stops watching `descriptor`; does nothing where it was not watched.
  package func remove(_ descriptor: CInt) {
    _ = nightjar_epoll_forget(fileDescriptor, descriptor)
  }

  /// Passes the tokens of descriptors that are ready or have an error to `body`, without waiting. Returns `false` where
  /// there may be more than the capacity.
  package func takeReady(_ body: (UInt64) -> Void) -> Bool {
    let count = Int(nightjar_epoll_take(fileDescriptor, events.baseAddress, CInt(events.count)))
    guard count > 0 else { return true }
    for index in 0..<count { body(nightjar_event_token(events.baseAddress.unsafelyUnwrapped + index)) }
    return count < events.count
  }
}
