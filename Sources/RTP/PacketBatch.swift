/// The RTP packets of one access unit, or of several, ready for a gathering send.
///
/// A packet has two parts that go out one after the other. The header part lies in the batch. The payload part
/// lies in the access unit that was packetized, so that the picture's bytes are never copied, or in the batch
/// where the bytes had to be made (a transport stream).
///
/// All memory is kept from one access unit to the next and grows only for one that is larger than all before.
public final class PacketBatch {
  /// One RTP packet: `header` and then `payload`, which may be empty.
  ///
  /// Both are valid until the batch is changed, and `payload` only while the access unit's bytes are.
  public struct Packet {
    /// The RTP header and whatever else was made for this packet.
    public let header: UnsafeRawBufferPointer
    /// What goes out behind ``header``.
    public let payload: UnsafeRawBufferPointer
    /// The bytes of both.
    public var count: Int { header.count + payload.count }
  }

  // Offsets instead of addresses, because the arenas may move while the batch grows.
  private struct Entry {
    var headerOffset: Int
    var headerCount: Int
    var lent: UnsafeRawPointer?
    var storedOffset: Int
    var payloadCount: Int
  }

  /// How many packets there are.
  public private(set) var count = 0
  /// The sum of the packets' bytes, RTP headers included.
  public private(set) var totalBytes = 0

  /// Payload bytes that had to be made.
  var stored: ByteArena
  private var headers: ByteArena
  private var entries: UnsafeMutablePointer<Entry>
  private var entryCapacity: Int

  /// An empty batch with room for `packets` packets and `storedBytes` bytes of payload made here (a transport
  /// stream needs some 1.03 times the access unit, H.264 none).
  public init(packets: Int = 256, storedBytes: Int = 0) {
    entryCapacity = max(packets, 16)
    entries = .allocate(capacity: entryCapacity)
    headers = ByteArena(capacity: entryCapacity * 16)
    stored = ByteArena(capacity: storedBytes)
  }

  deinit {
    entries.deallocate()
  }

  /// Forgets the packets and keeps the memory.
  public func removeAll() {
    count = 0
    totalBytes = 0
    headers.removeAll()
    stored.removeAll()
  }

  /// Packet number `index`, from 0 in sending order.
  public subscript(index: Int) -> Packet {
    precondition(index >= 0 && index < count, "a packet that is not in the batch")
    let entry = entries[index]
    let payload = entry.lent ?? UnsafeRawPointer(stored.address(of: entry.storedOffset))
    return Packet(
      header: UnsafeRawBufferPointer(start: headers.address(of: entry.headerOffset), count: entry.headerCount),
      payload: UnsafeRawBufferPointer(start: payload, count: entry.payloadCount))
  }

  /// How many bytes of memory the batch has: the same number means that nothing was allocated.
  public var memoryBytes: Int {
    headers.capacity + stored.capacity + entryCapacity * MemoryLayout<Entry>.stride
  }

  /// Appends a packet of `headerBytes`, which the caller fills at the returned address at once, and lent bytes.
  func append(headerBytes: Int, lending payload: UnsafeRawBufferPointer) -> UnsafeMutableRawPointer {
    append(headerBytes: headerBytes, lent: payload.baseAddress, storedOffset: 0, payloadCount: payload.count)
  }

  /// Appends a packet of `headerBytes`, which the caller fills at the returned address at once, and bytes of
  /// ``stored``.
  func append(headerBytes: Int, storedRange: Range<Int>) -> UnsafeMutableRawPointer {
    append(
      headerBytes: headerBytes, lent: nil, storedOffset: storedRange.lowerBound, payloadCount: storedRange.count)
  }

  /// Appends a packet of `headerBytes` that has no second part.
  func append(headerBytes: Int) -> UnsafeMutableRawPointer {
    append(headerBytes: headerBytes, lent: nil, storedOffset: 0, payloadCount: 0)
  }

  /// Appends a copy of `packet` as a whole, and `room` more bytes, which the caller fills at once, as with a tag behind
  /// what is encrypted in place; where the packet is, until the batch is changed.
  public func append(copying packet: Packet, room: Int = 0) -> UnsafeMutableRawPointer {
    let memory = append(headerBytes: packet.count + room)
    UnsafeMutableRawBufferPointer(start: memory, count: packet.header.count).copyMemory(from: packet.header)
    UnsafeMutableRawBufferPointer(start: memory + packet.header.count, count: packet.payload.count)
      .copyMemory(from: packet.payload)
    return memory
  }

  /// Sets the marker bit of the last packet.
  func markLast() {
    guard count > 0 else { return }
    let second = headers.address(of: entries[count - 1].headerOffset) + 1
    second.storeBytes(of: second.load(as: UInt8.self) | 0x80, as: UInt8.self)
  }

  private func append(
    headerBytes: Int, lent: UnsafeRawPointer?, storedOffset: Int, payloadCount: Int
  ) -> UnsafeMutableRawPointer {
    if count == entryCapacity { growEntries() }
    let offset = headers.extend(by: headerBytes)
    (entries + count).initialize(
      to: Entry(
        headerOffset: offset, headerCount: headerBytes, lent: lent, storedOffset: storedOffset,
        payloadCount: payloadCount))
    count += 1
    totalBytes += headerBytes + payloadCount
    return headers.address(of: offset)
  }

  private func growEntries() {
    let larger = UnsafeMutablePointer<Entry>.allocate(capacity: entryCapacity * 2)
    larger.moveInitialize(from: entries, count: count)
    entries.deallocate()
    entries = larger
    entryCapacity *= 2
  }
}
