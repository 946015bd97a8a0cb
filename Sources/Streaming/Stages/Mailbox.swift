package import Platform

/// A place for one element between two threads, where the newest wins: a consumer that is late finds the latest
/// element, and the producer does not wait for the consumer.
///
/// A consumer is late if it is busy with something else. A consumer that waits here, was woken, and has not had a
/// processor since is not late. So two frames that come at once after a stall are both taken, even from a producer of
/// higher priority.
package final class Mailbox<Element: ~Copyable>: @unchecked Sendable {
  // Sendable: `slot` and `isClosed` are touched only under the monitor, and an element has one holder at a time.
  private let monitor = Monitor()
  private var slot: Element?
  private var isClosed = false
  /// `true` if the consumer does nothing but wait for an element.
  private var isAwaited = false
  private let patience: Duration

  /// Creates an empty mailbox.
  ///
  /// - Parameter patience: the time that a woken consumer may be without a processor before it counts as late.
  package init(patience: Duration = .zero) {
    self.patience = patience
  }

  /// `true` if the consumer waits for an element.
  package var hasWaitingConsumer: Bool { monitor.locked { isAwaited } }

  /// Puts `element` in and returns the one that it replaced. The caller releases that one outside the lock, because the
  /// end of a camera's frame is a system call.
  package func put(_ element: consuming Element) -> Element? {
    // A closure cannot consume what it captures, so the element crosses in an optional.
    var incoming: Element? = consume element
    let displaced = monitor.locked { () -> Element? in
      if slot != nil, isAwaited { waitForConsumer() }
      let displaced = slot.take()
      slot = incoming.take()
      return displaced
    }
    // Outside the lock: a consumer that is woken under it, and runs at once, finds the lock held and waits a second
    // time.
    monitor.signal()
    return displaced
  }

  /// Waits until there is room, then puts `element` in. Returns `element` if the mailbox was closed meanwhile.
  package func putWaiting(_ element: consuming Element) -> Element? {
    var incoming: Element? = consume element
    return monitor.locked { () -> Element? in
      while slot != nil, !isClosed { monitor.wait() }
      if isClosed { return incoming.take() }
      slot = incoming.take()
      monitor.signal()
      return nil
    }
  }

  /// Gives the woken consumer time to take the element.
  private func waitForConsumer() {
    let deadline = Instant.now() + patience
    while slot != nil, isAwaited, monitor.wait(until: deadline) {}
  }

  /// Waits for an element. Returns nil once the mailbox is closed and empty.
  package func take() -> Element? {
    monitor.locked { () -> Element? in
      isAwaited = true
      while slot == nil, !isClosed { monitor.wait() }
      isAwaited = false
      let element = slot.take()
      monitor.signal()
      return element
    }
  }

  /// Ends all waiting: a present element may still be taken, and no other may be put in.
  package func close() {
    monitor.locked {
      isClosed = true
      monitor.signal()
    }
  }
}
