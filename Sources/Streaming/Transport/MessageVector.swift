package import CLinux
import Glibc
import Platform
package import RTP

/// The packets of one access unit in the form that the kernel takes; made once and sent to every viewer.
///
/// The same packets are available in two forms: one message each, and messages of several packets of one size, which
/// the kernel or the network card splits (UDP segmentation offload).
package struct MessageVector: ~Copyable {
  /// Two vectors a packet: its header and its payload.
  private var vectors: UnsafeMutableBufferPointer<iovec>
  private var plain: UnsafeMutableBufferPointer<nightjar_message>
  private var grouped: UnsafeMutableBufferPointer<nightjar_message>
  private var controls: UnsafeMutableBufferPointer<nightjar_message_control>
  /// The control message of all plain messages: they have the same.
  private let plainControl: UnsafeMutablePointer<nightjar_message_control>
  /// The first packet of each grouped message, and at the end the number of packets.
  private var firsts: UnsafeMutableBufferPointer<Int>
  private var capacity: Int

  /// The number of packets.
  package private(set) var count = 0
  /// The number of grouped messages that hold them.
  package private(set) var groups = 0

  /// Allocates room for `capacity` packets. A larger access unit gets more room, which is kept.
  package init(capacity: Int = 64) {
    self.capacity = capacity
    vectors = .allocate(capacity: capacity * 2)
    plain = .allocate(capacity: capacity)
    grouped = .allocate(capacity: capacity)
    controls = .allocate(capacity: capacity)
    plainControl = .allocate(capacity: 1)
    firsts = .allocate(capacity: capacity + 1)
  }

  deinit {
    vectors.deallocate()
    plain.deallocate()
    grouped.deallocate()
    controls.deallocate()
    plainControl.deallocate()
    firsts.deallocate()
  }

  /// Points at every packet of `batch`, whose bytes must stay until the last send, with at most `segments` packets in a
  /// message.
  package mutating func fill(from batch: PacketBatch, segments: Int) {
    if batch.count > capacity { self = MessageVector(capacity: max(batch.count, capacity * 2)) }
    count = batch.count
    groups = 0
    var index = 0
    while index < count {
      let size = append(batch[index], at: index)
      var end = index + 1
      var bytes = size
      var last = size
      while end < count, last == size, end - index < segments {
        let next = batch[end].count
        guard next <= size, bytes + next <= Int(nightjar_segmented_bytes_limit) else { break }
        last = append(batch[end], at: end)
        bytes += last
        end += 1
      }
      close(index..<end, size: size)
      index = end
    }
    firsts[groups] = count
  }

  private mutating func append(_ packet: PacketBatch.Packet, at index: Int) -> Int {
    vectors[index * 2] = iovec(
      iov_base: UnsafeMutableRawPointer(mutating: packet.header.baseAddress), iov_len: packet.header.count)
    vectors[index * 2 + 1] = iovec(
      iov_base: UnsafeMutableRawPointer(mutating: packet.payload.baseAddress), iov_len: packet.payload.count)
    plain[index] = message(of: index..<index + 1)
    return packet.count
  }

  private mutating func close(_ packets: Range<Int>, size: Int) {
    grouped[groups] = message(of: packets)
    if packets.count > 1 {
      nightjar_set_segment_size(
        grouped.baseAddress.unsafelyUnwrapped + groups, controls.baseAddress.unsafelyUnwrapped + groups,
        UInt16(truncatingIfNeeded: size))
    }
    firsts[groups] = packets.lowerBound
    groups += 1
  }

  private func message(of packets: Range<Int>) -> nightjar_message {
    var message = nightjar_message()
    message.header.msg_iov = vectors.baseAddress.unsafelyUnwrapped + packets.lowerBound * 2
    message.header.msg_iovlen = packets.count * 2
    return message
  }

  /// Writes the address into every message; a connected socket's messages need none.
  ///
  /// - Parameters:
  ///   - name: the address, which must stay until the last send.
  ///   - source: the local address to send from; nil leaves it to the kernel.
  mutating func address(to name: UnsafeMutablePointer<sockaddr_storage>, length: socklen_t, from source: IPAddress?) {
    func write(_ message: inout nightjar_message, _ control: UnsafeMutablePointer<nightjar_message_control>) {
      message.header.msg_name = UnsafeMutableRawPointer(name)
      message.header.msg_namelen = length
      if let source { nightjar_set_source(&message, control, source.bytes, source.bytes.count) }
    }
    for index in 0..<count { write(&plain[index], plainControl) }
    for index in 0..<groups { write(&grouped[index], controls.baseAddress.unsafelyUnwrapped + index) }
  }

  /// Returns the messages of one packet each for `packets`.
  package func plain(_ packets: Range<Int>) -> UnsafeMutableBufferPointer<nightjar_message> {
    UnsafeMutableBufferPointer(rebasing: plain[packets])
  }

  /// Returns the messages of several packets that hold `packets`, whose ends are message ends.
  package func grouped(_ packets: Range<Int>) -> UnsafeMutableBufferPointer<nightjar_message> {
    UnsafeMutableBufferPointer(rebasing: grouped[group(from: packets.lowerBound)..<group(from: packets.upperBound)])
  }

  /// Returns the first packet, from `packet` on, that begins a message; or the number of packets where none does.
  package func boundary(from packet: Int) -> Int { firsts[group(from: packet)] }

  /// Returns `true` if a message begins with `packet`.
  package func isBoundary(_ packet: Int) -> Bool { boundary(from: packet) == packet }

  /// Returns the number of packets in message `index` of those from `packet` on.
  package func packets(inGroup index: Int, from packet: Int) -> Int {
    let group = group(from: packet) + index
    return firsts[group + 1] - firsts[group]
  }

  /// Returns the first message that begins with `packet` or later.
  private func group(from packet: Int) -> Int {
    var (low, high) = (0, groups)
    while low < high {
      let middle = (low + high) / 2
      if firsts[middle] < packet { low = middle + 1 } else { high = middle }
    }
    return low
  }
}
