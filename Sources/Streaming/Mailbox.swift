import Media
import Threading

/// A place for one thing between two threads, where the newest wins: a consumer that is late finds the latest,
/// and the producer does not wait for it.
///
/// Late is who has something else to do. One that waits here, was woken, and has not had a processor since is not: two
/// frames that come at once after a stall, to a producer that runs before others, are both taken.
final class Mailbox<Element: ~Copyable>: @unchecked Sendable {
  // Sendable: `slot` and `isClosed` are touched only under the monitor, and an element has one holder at a time.
  private let monitor = Monitor()
  private var slot: Element?
  private var isClosed = false
  /// Whether the consumer does nothing but wait for an element.
  private var isAwaited = false
  private let patience: MediaTime

  /// An empty one.
  ///
  /// - Parameter patience: how long a consumer that was woken may be without a processor before it counts as late.
  init(patience: MediaTime = .zero) {
    self.patience = patience
  }

  /// Whether the consumer waits for an element.
  var hasWaitingConsumer: Bool { monitor.locked { isAwaited } }

  /// Puts `element` in and gives back the one that it replaced: the caller lets go of that outside the lock,
  /// because the end of a camera's frame is a system call.
  func put(_ element: consuming Element) -> Element? {
    // A closure cannot consume what it captures, so the element crosses in an optional.
    var incoming: Element? = consume element
    let displaced = monitor.locked { () -> Element? in
      if slot != nil, isAwaited { waitForConsumer() }
      let displaced = slot.take()
      slot = incoming.take()
      return displaced
    }
    // Outside: one that is woken within, and runs at once, finds the lock held and waits a second time.
    monitor.signal()
    return displaced
  }

  /// Waits until there is room, then puts `element` in; gives it back if the mailbox was closed meanwhile.
  func putWaiting(_ element: consuming Element) -> Element? {
    var incoming: Element? = consume element
    return monitor.locked { () -> Element? in
      while slot != nil, !isClosed { monitor.wait() }
      if isClosed { return incoming.take() }
      slot = incoming.take()
      monitor.signal()
      return nil
    }
  }

  /// Gives the consumer, which was woken, the time to take what is in.
  private func waitForConsumer() {
    let deadline = MediaTime.now() + patience
    while slot != nil, isAwaited, monitor.wait(until: deadline) {}
  }

  /// Waits for an element; nil once the mailbox is closed and empty.
  func take() -> Element? {
    monitor.locked { () -> Element? in
      isAwaited = true
      while slot == nil, !isClosed { monitor.wait() }
      isAwaited = false
      let element = slot.take()
      monitor.signal()
      return element
    }
  }

  /// Ends all waiting: what is in may still be taken, nothing more may be put.
  func close() {
    monitor.locked {
      isClosed = true
      monitor.signal()
    }
  }
}
