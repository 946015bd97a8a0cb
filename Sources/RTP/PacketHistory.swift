public import Media

/// The packets sent last, whole, found by sequence number: what a generic NACK is answered from.
///
/// A ring of bytes and a ring of entries, both of a fixed size: the oldest packets make room for new ones, and
/// nothing is allocated after the start. One history serves all viewers of a stream.
public struct PacketHistory: ~Copyable {
  private struct Entry {
    /// Where the bytes begin, counted from the history's first byte and never wrapped.
    var position: UInt64 = 0
    var count = 0
    var sequenceNumber: UInt16 = 0
    var isUsed = false
    var sent = MediaTime.zero
  }

  /// Bytes that are held at most.
  public let byteCapacity: Int
  /// Packets that are held at most, a power of two.
  public let packetCapacity: Int
  /// How old a packet may be that is still found.
  public let maximumAge: MediaTime

  private let memory: UnsafeMutableRawPointer
  private let entries: UnsafeMutablePointer<Entry>
  /// Where the next packet will begin; see `Entry.position`.
  private var end: UInt64 = 0

  /// An empty history.
  ///
  /// - Parameters:
  ///   - packets: How many packets are held, rounded up to a power of two between 16 and 32,768.
  ///   - bytes: How many bytes; 1 MiB is 2 s at 4 Mbit/s.
  ///   - maximumAge: How old a packet may be that is still found: a later one would come too late to be shown.
  public init(
    packets: Int = 1024, bytes: Int = 1 << 20, maximumAge: MediaTime = MediaTime(nanoseconds: 1_000_000_000)
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

  deinit {
    entries.deallocate()
    memory.deallocate()
  }

  /// The memory that it has, in bytes; always the same.
  public var memoryBytes: Int { byteCapacity + packetCapacity * MemoryLayout<Entry>.stride }

  /// Copies a packet that was sent at `time`. One larger than the whole history, or without an RTP header, is
  /// left out.
  public mutating func append(_ packet: PacketBatch.Packet, at time: MediaTime) {
    append(header: packet.header, payload: packet.payload, at: time)
  }

  /// Copies a packet in two parts that was sent at `time`; `header` has the whole RTP header.
  public mutating func append(header: UnsafeRawBufferPointer, payload: UnsafeRawBufferPointer, at time: MediaTime) {
    let count = header.count + payload.count
    guard header.count >= RTPHeader.byteCount, count <= byteCapacity,
      let sequenceNumber = header.bigEndian(UInt16.self, at: 2)
    else { return }
    // A packet lies in one piece: where the rest of the ring is too short for it, it begins anew.
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

  /// Lends packet `sequenceNumber` to `body`; nil where it is not held, or too old at `time`.
  public func withPacket<Result>(
    _ sequenceNumber: UInt16, at time: MediaTime, _ body: (UnsafeRawBufferPointer) -> Result
  ) -> Result? {
    withPacket(sequenceNumber, at: time) { packet, _ in body(packet) }
  }

  /// Lends packet `sequenceNumber` to `body`, with the time at which it was sent; nil where it is not held, or too old at
  /// `time`.
  public func withPacket<Result>(
    _ sequenceNumber: UInt16, at time: MediaTime, _ body: (UnsafeRawBufferPointer, _ sent: MediaTime) -> Result
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
