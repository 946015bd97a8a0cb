import Platform
import Synchronization

/// The RTCP datagrams that another thread has received for a transport, until the send thread takes them.
struct ControlInbox: ~Copyable, Sendable {
  private let waiting = Mutex<[[UInt8]]>([])
  private let arrival: Interrupt
  private let limit: Int

  /// Creates an empty inbox.
  ///
  /// - Parameter limit: the most datagrams that wait; more are lost, as in a socket's buffer.
  /// - Throws: ``SystemFailure`` where the process has no descriptor left.
  init(limit: Int) throws(SystemFailure) {
    self.limit = limit
    arrival = try Interrupt()
  }

  /// The descriptor that is readable while a datagram waits.
  var fileDescriptor: CInt { arrival.fileDescriptor }

  /// Adds a datagram. Any thread.
  func add(_ datagram: [UInt8]) {
    waiting.withLock {
      if $0.count < limit { $0.append(datagram) }
      // Under the lock: otherwise the other side could clear this interrupt together with the one before, and not see
      // it.
      arrival.fire()
    }
  }

  /// Takes the oldest datagram into `memory`; see ``PacketTransport/receiveControl(into:hasMore:)``.
  func take(into memory: UnsafeMutableRawBufferPointer, hasMore: inout Bool) -> Int {
    let datagram = waiting.withLock { list in
      let datagram = list.isEmpty ? nil : list.removeFirst()
      if list.isEmpty { arrival.clear() }
      return datagram
    }
    hasMore = datagram != nil
    guard let datagram, datagram.count <= memory.count else { return 0 }
    memory.copyBytes(from: datagram)
    return datagram.count
  }
}
