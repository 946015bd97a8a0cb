import Media
import Threading

/// A place for one thing between two threads, where the newest wins: a consumer that is late finds the latest,
/// and the producer never waits for it.
final class Mailbox<Element: ~Copyable>: @unchecked Sendable {
  // Sendable: `slot` and `isClosed` are touched only under the monitor, and an element has one holder at a time.
  private let monitor = Monitor()
  private var slot: Element?
  private var isClosed = false

  /// An empty one.
  init() {}

  /// Puts `element` in and gives back the one that it replaced: the caller lets go of that outside the lock,
  /// because the end of a camera's frame is a system call.
  func put(_ element: consuming Element) -> Element? {
    // A closure cannot consume what it captures, so the element crosses in an optional.
    var incoming: Element? = consume element
    let displaced = monitor.locked { () -> Element? in
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

  /// Waits for an element; nil once the mailbox is closed and empty.
  func take() -> Element? {
    monitor.locked { () -> Element? in
      while slot == nil, !isClosed { monitor.wait() }
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
