/// The RTP packets of one or several access units, ready for a gathering send.
///
/// A packet has two parts that are sent one after the other. The header part lies in the batch. The payload part
/// usually lies in the access unit, so that the picture's bytes are never copied. It lies in the batch if the bytes
/// had to be made (a transport stream).
///
/// The batch keeps all memory from one access unit to the next. The memory grows only for an access unit that is
/// larger than all before.
public final class PacketBatch {
  /// One RTP packet: `header`, then `payload`, which may be empty.
  ///
  /// Both are valid until the batch changes. `payload` is valid only as long as the access unit's bytes are.
  public struct Packet {
    /// The RTP header and all other bytes that were made for this packet.
    public let header: UnsafeRawBufferPointer
    /// The bytes that follow ``header``.
    public let payload: UnsafeRawBufferPointer
    /// The number of bytes of both parts.
    public var count: Int { header.count + payload.count }

    /// Creates a packet of bytes that lie elsewhere.
    package init(header: UnsafeRawBufferPointer, payload: UnsafeRawBufferPointer) {
      (self.header, self.payload) = (header, payload)
    }
  }

  // Offsets instead of addresses, because the arenas may move while the batch grows.
  private struct Entry {
    var headerOffset: Int
    var headerCount: Int
    var lent: UnsafeRawPointer?
    var storedOffset: Int
    var payloadCount: Int
  }

  /// The number of packets.
  public private(set) var count = 0
  /// The sum of the packets' bytes, RTP headers included.
  public private(set) var totalBytes = 0

  /// The payload bytes that had to be made.
  var stored: ByteArena
  private var headers: ByteArena
  private var entries: UnsafeMutablePointer<Entry>
  private var entryCapacity: Int

  /// Creates an empty batch.
  ///
  /// - Parameters:
  ///   - packets: The number of packets that there is room for.
  ///   - storedBytes: The number of payload bytes made in the batch that there is room for. A transport stream needs
  ///     about 1.03 times the access unit, H.264 none.
  public init(packets: Int = 256, storedBytes: Int = 0) {
    entryCapacity = max(packets, 16)
    entries = .allocate(capacity: entryCapacity)
    headers = ByteArena(capacity: entryCapacity * 16)
    stored = ByteArena(capacity: storedBytes)
  }

  deinit {
    entries.deallocate()
  }

  /// Discards the packets and keeps the memory.
  public func removeAll() {
    count = 0
    totalBytes = 0
    headers.removeAll()
    stored.removeAll()
  }

  /// Returns packet number `index`, counted from 0 in sending order.
  public subscript(index: Int) -> Packet {
    precondition(index >= 0 && index < count, "a packet that is not in the batch")
    let entry = entries[index]
    let payload = entry.lent ?? UnsafeRawPointer(stored.address(of: entry.storedOffset))
    return Packet(
      header: UnsafeRawBufferPointer(start: headers.address(of: entry.headerOffset), count: entry.headerCount),
      payload: UnsafeRawBufferPointer(start: payload, count: entry.payloadCount))
  }

  /// The batch's memory in bytes. An unchanged number means that nothing was allocated.
  public var memoryBytes: Int {
    headers.capacity + stored.capacity + entryCapacity * MemoryLayout<Entry>.stride
  }

  /// Appends a packet of `headerBytes`, which the caller fills at the returned address at once, and lent bytes.
  package func append(headerBytes: Int, lending payload: UnsafeRawBufferPointer) -> UnsafeMutableRawPointer {
    append(headerBytes: headerBytes, lent: payload.baseAddress, storedOffset: 0, payloadCount: payload.count)
  }

  /// Appends a packet of `headerBytes`, which the caller fills at the returned address at once, and bytes of
  /// ``stored``.
  func append(headerBytes: Int, storedRange: Range<Int>) -> UnsafeMutableRawPointer {
    append(
      headerBytes: headerBytes, lent: nil, storedOffset: storedRange.lowerBound, payloadCount: storedRange.count)
  }

  /// Appends a packet of `headerBytes` that has no second part.
  package func append(headerBytes: Int) -> UnsafeMutableRawPointer {
    append(headerBytes: headerBytes, lent: nil, storedOffset: 0, payloadCount: 0)
  }

  /// Appends a copy of the whole `packet`, and `room` more bytes, which the caller fills at once, for example with
  /// the tag of an in-place encryption. Returns the packet's address, valid until the batch changes.
  public func append(copying packet: Packet, room: Int = 0) -> UnsafeMutableRawPointer {
    let memory = append(headerBytes: packet.count + room)
    UnsafeMutableRawBufferPointer(start: memory, count: packet.header.count).copyMemory(from: packet.header)
    UnsafeMutableRawBufferPointer(start: memory + packet.header.count, count: packet.payload.count)
      .copyMemory(from: packet.payload)
    return memory
  }

  /// Sets the marker bit of the last packet.
  package func markLast() {
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
