import CLinux
import Glibc
package import Platform
import Synchronization

/// A TCP connection that a WebRTC peer has opened (RFC 6544). Each datagram on it follows its length (RFC 4571). Several
/// threads send on it; one receives.
///
/// The waiting bytes are limited, because a picture that waits is late: ``unsentLimit`` bytes in the kernel, the rest of one packet
/// that has begun to leave, and small datagrams up to ``waitingLimit``. What has no room is not taken.
package final class PeerConnection: Sendable {
  /// The connection's number, which no other one has or had.
  package let number: UInt64
  /// The peer's address.
  package let peer: SocketAddress
  /// The local address at which the peer has connected.
  package let local: IPAddress?
  private let descriptor: FileDescriptor
  /// The descriptor, to wait for bytes and for room.
  package let fileDescriptor: CInt
  private let state = Mutex(State())
  private let onWait: @Sendable () -> Void

  private struct State: ~Copyable {
    /// The bytes that follow those the kernel has taken.
    var waiting: [UInt8] = []
    var isClosed = false
    /// Datagrams that found no room.
    var dropped: UInt64 = 0
  }

  /// The most bytes in the kernel that it has not sent even once.
  package static let unsentLimit = 32_768
  /// The most bytes of small datagrams that wait here.
  package static let waitingLimit = 16_384
  /// The size of the length before a datagram.
  package static let lengthBytes = 2

  /// Takes over a connected socket.
  ///
  /// - Parameter onWait: is called by the sending thread when bytes begin to wait; ``flush()`` is to be called once there
  ///   is room.
  init(
    _ descriptor: consuming FileDescriptor, number: UInt64, peer: SocketAddress, onWait: @escaping @Sendable () -> Void
  ) {
    fileDescriptor = descriptor.number
    self.descriptor = descriptor
    self.number = number
    self.peer = peer
    self.onWait = onWait
    local = SocketAddress(localOf: fileDescriptor)?.address
  }

  /// The datagrams that found no room so far.
  package var dropped: UInt64 { state.withLock { $0.dropped } }

  /// `true` once the connection is closed, by either side.
  package var isClosed: Bool { state.withLock { $0.isClosed } }

  /// `true` if a packet could leave now, and once the connection is closed.
  var hasRoom: Bool {
    state.withLock { state in
      !flush(&state) || state.waiting.isEmpty && nightjar_has_room(fileDescriptor) == 1
    }
  }

  /// Ends the connection for both sides. Its descriptor is closed with the last owner.
  package func close() {
    state.withLock { state in
      state.isClosed = true
      state.waiting = []
      shutdown(fileDescriptor, CInt(SHUT_RDWR))
    }
  }

  /// Takes the next bytes into `memory`. Returns 0 if there are none now; nil once the peer has closed the connection.
  package func receive(into memory: UnsafeMutableRawBufferPointer) -> Int? {
    let count = uninterrupted { nightjar_receive_bytes(fileDescriptor, memory.baseAddress, memory.count) }
    if count > 0 { return count }
    return count < 0 && errno == EAGAIN ? 0 : nil
  }

  /// Sends packets that lie one behind the other, each behind its length. A packet of which nothing can leave is not taken.
  ///
  /// - Parameter end: returns the end of the packet in which the bytes before a position end.
  /// - Returns: the bytes that were taken, up to the end of a packet; nil once the connection is closed.
  func send(_ packets: UnsafeRawBufferPointer, endOfPacket end: (Int) -> Int) -> Int? {
    let (taken, hasRest) = state.withLock { state -> (Int?, Bool) in
      guard flush(&state) else { return (nil, false) }
      guard state.waiting.isEmpty else { return (0, false) }
      guard let count = write(packets) else {
        state.isClosed = true
        return (nil, false)
      }
      let taken = count == 0 ? 0 : end(count)
      state.waiting += packets[count..<taken]
      return (taken, taken > count)
    }
    if hasRest { onWait() }
    return taken
  }

  /// Sends a datagram, which may wait behind others. It is dropped, and counted, where there is no room.
  package func send(_ datagram: UnsafeRawBufferPointer) {
    let beginsToWait = state.withLock { state -> Bool in
      guard flush(&state) else { return false }
      guard state.waiting.count + Self.lengthBytes + datagram.count <= Self.waitingLimit else {
        state.dropped += 1
        return false
      }
      let wasEmpty = state.waiting.isEmpty
      state.waiting += [UInt8(datagram.count >> 8), UInt8(datagram.count & 0xff)]
      state.waiting += datagram
      return flush(&state) && wasEmpty && !state.waiting.isEmpty
    }
    if beginsToWait { onWait() }
  }

  /// Sends what waits, as far as there is room. Returns `true` if nothing waits any more.
  package func flush() -> Bool { state.withLock { !flush(&$0) || $0.waiting.isEmpty } }

  /// Sends what waits. Returns `false` if the connection is closed.
  private func flush(_ state: inout State) -> Bool {
    guard !state.isClosed else { return false }
    guard !state.waiting.isEmpty else { return true }
    guard let count = state.waiting.withUnsafeBytes({ write($0) }) else {
      state.isClosed = true
      return false
    }
    state.waiting.removeFirst(count)
    return true
  }

  /// Returns the number of bytes that the kernel has taken; nil if the connection has failed.
  private func write(_ bytes: UnsafeRawBufferPointer) -> Int? {
    let count = uninterrupted { nightjar_send_bytes(fileDescriptor, bytes.baseAddress, bytes.count) }
    if count >= 0 { return count }
    return errno == EAGAIN ? 0 : nil
  }
}
