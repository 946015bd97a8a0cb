package import NIOCore
import Streaming

/// The bytes that wait for a connection whose network is weak, in their order: packets of pictures, and what must not leave
/// before them. They leave in whole packets, a few at a time, so that sound and answers find little before them.
package struct WaitingPackets {
  /// Bytes that were given at once.
  private struct Item {
    var bytes: ByteBuffer
    /// `true` for packets of pictures, between which sound and answers may leave. Other bytes leave as a whole.
    let isPicture: Bool
  }

  private var items = CircularBuffer<Item>(initialCapacity: 4)
  /// The items that nothing overtakes: answers, and the sound behind them.
  private var barriers = 0
  /// The number of bytes.
  package private(set) var count = 0

  /// Creates an empty queue.
  package init() {}

  /// `true` if nothing waits.
  package var isEmpty: Bool { items.isEmpty }
  /// `true` if sound and answers may leave before all that waits.
  package var allowsOvertaking: Bool { barriers == 0 }

  /// Adds bytes behind all others.
  ///
  /// - Parameters:
  ///   - bytes: whole interleaved packets if they are of pictures; there is at least one byte.
  ///   - isPicture: `true` if sound and answers may leave before them, or between two of their packets.
  package mutating func append(_ bytes: ByteBuffer, isPicture: Bool) {
    items.append(Item(bytes: bytes, isPicture: isPicture))
    count += bytes.readableBytes
    if !isPicture { barriers += 1 }
  }

  /// Removes the first bytes, all from one ``append(_:isPicture:)``: the packets that begin within the first `room` bytes. Returns
  /// nil where there is no room, or nothing waits.
  package mutating func take(within room: Int) -> ByteBuffer? {
    guard room > 0, let first = items.first else { return nil }
    let length = first.isPicture ? Self.length(ofPacketsIn: first.bytes, within: room) : first.bytes.readableBytes
    let piece = items.modify(items.startIndex) { $0.bytes.readSlice(length: length) }
    count -= length
    if first.bytes.readableBytes == length {
      _ = items.popFirst()
      if !first.isPicture { barriers -= 1 }
    }
    return piece
  }

  /// Forgets everything.
  mutating func removeAll() {
    items.removeAll()
    (barriers, count) = (0, 0)
  }

  /// Returns the length of the packets that begin within the first `room` bytes (RFC 2326 section 10.12).
  private static func length(ofPacketsIn bytes: ByteBuffer, within room: Int) -> Int {
    let count = bytes.readableBytes
    guard room < count else { return count }
    var end = 0
    while end < room {
      // The length follows `$` and the channel.
      guard let length = bytes.getInteger(at: bytes.readerIndex + end + 2, as: UInt16.self) else { return count }
      end += InterleavedBytes.headerBytes + Int(length)
    }
    return min(end, count)
  }
}
