public import Platform

/// The packets sent last, complete, found by sequence number: the source of answers to a generic NACK.
///
/// The history has a ring of bytes and a ring of entries, both of a fixed size. New packets replace the oldest ones.
/// The history allocates only at creation. One history serves all viewers of a stream.
public struct PacketHistory: ~Copyable {
  private struct Entry {
    /// The position of the packet's first byte, counted from the history's first byte and never wrapped.
    var position: UInt64 = 0
    var count = 0
    var sequenceNumber: UInt16 = 0
    var isUsed = false
    var sent = Instant.zero
  }

  /// The maximum number of bytes held.
  public let byteCapacity: Int
  /// The maximum number of packets held, a power of two.
  public let packetCapacity: Int
  /// The maximum age at which a packet is still found.
  public let maximumAge: Duration

  private let memory: UnsafeMutableRawPointer
  private let entries: UnsafeMutablePointer<Entry>
  /// The position of the next packet; see `Entry.position`.
  private var end: UInt64 = 0

  /// Creates an empty history.
  ///
  /// - Parameters:
  ///   - packets: The number of packets held, rounded up to a power of two between 16 and 32,768.
  ///   - bytes: The number of bytes held; 1 MiB is 2 s at 4 Mbit/s.
  ///   - maximumAge: The maximum age at which a packet is still found. A later retransmission would arrive too late
  ///     for display.
  public init(
    packets: Int = 1024, bytes: Int = 1 << 20, maximumAge: Duration = .seconds(1)
  ) {
    var capacity = 16
    while capacity < min(packets, 1 << 15) { capacity *= 2 }
    packetCapacity = capacity
    byteCapacity = max(bytes, PacketSize.minimum)
    self.maximumAge = maximumAge
    memory = .allocate(byteCount: byteCapacity, alignment: 16)
    entries = .allocate(capacity: capacity)
    entries.initialize(repeating: Entry(), count: capacity)
  }

  /// Creates a history for a stream that goes on from that of `other` for one of its receivers, with the newest packets that have room
  /// here and can still be found at `time`.
  ///
  /// - Parameters:
  ///   - next: The sequence number of the next packet.
  ///   - packets: The number of packets held, as for ``init(packets:bytes:maximumAge:)``.
  ///   - bytes: The number of bytes held.
  package init(
    continuing other: borrowing PacketHistory, before next: UInt16, packets: Int, bytes: Int, at time: Instant
  ) {
    self.init(packets: packets, bytes: bytes, maximumAge: other.maximumAge)
    var (first, left) = (next, byteCapacity)
    while next &- first < packetCapacity,
      let count = other.withPacket(first &- 1, at: time, { $0.count }), count <= left
    {
      left -= count
      first &-= 1
    }
    while first != next {
      _ = other.withPacket(first, at: time) { (packet, sent) in
        append(header: packet, payload: UnsafeRawBufferPointer(start: nil, count: 0), at: sent)
      }
      first &+= 1
    }
  }

  deinit {
    entries.deallocate()
    memory.deallocate()
  }

  /// The history's memory in bytes, a constant.
  public var memoryBytes: Int { byteCapacity + packetCapacity * MemoryLayout<Entry>.stride }

  /// Copies a packet that was sent at `time`. A packet that is larger than the whole history, or has no RTP header,
  /// is left out.
  public mutating func append(_ packet: PacketBatch.Packet, at time: Instant) {
    append(header: packet.header, payload: packet.payload, at: time)
  }

  /// Copies a packet in two parts that was sent at `time`; `header` has the complete RTP header.
  public mutating func append(header: UnsafeRawBufferPointer, payload: UnsafeRawBufferPointer, at time: Instant) {
    let count = header.count + payload.count
    guard header.count >= RTPHeader.byteCount, count <= byteCapacity,
      let sequenceNumber = header.bigEndian(UInt16.self, at: 2)
    else { return }
    // A packet is contiguous: if the rest of the ring is too short, the packet starts at the beginning.
    var offset = Int(end % UInt64(byteCapacity))
    if offset + count > byteCapacity {
      end += UInt64(byteCapacity - offset)
      offset = 0
    }
    UnsafeMutableRawBufferPointer(start: memory + offset, count: header.count).copyMemory(from: header)
    UnsafeMutableRawBufferPointer(start: memory + offset + header.count, count: payload.count).copyMemory(
      from: payload)
    entries[index(of: sequenceNumber)] = Entry(
      position: end, count: count, sequenceNumber: sequenceNumber, isUsed: true, sent: time)
    end += UInt64(count)
  }

  /// Lends packet `sequenceNumber` to `body`. Returns `nil` if the packet is not held, or is too old at `time`.
  public func withPacket<Result>(
    _ sequenceNumber: UInt16, at time: Instant, _ body: (UnsafeRawBufferPointer) -> Result
  ) -> Result? {
    withPacket(sequenceNumber, at: time) { packet, _ in body(packet) }
  }

  /// Lends packet `sequenceNumber` and the time at which it was sent to `body`. Returns `nil` if the packet is not
  /// held, or is too old at `time`.
  public func withPacket<Result>(
    _ sequenceNumber: UInt16, at time: Instant, _ body: (UnsafeRawBufferPointer, _ sent: Instant) -> Result
  ) -> Result? {
    let entry = entries[index(of: sequenceNumber)]
    guard entry.isUsed, entry.sequenceNumber == sequenceNumber, end - entry.position <= UInt64(byteCapacity),
      time - entry.sent <= maximumAge
    else { return nil }
    let start = memory + Int(entry.position % UInt64(byteCapacity))
    return body(UnsafeRawBufferPointer(start: start, count: entry.count), entry.sent)
  }

  private func index(of sequenceNumber: UInt16) -> Int { Int(sequenceNumber) & (packetCapacity - 1) }
}
