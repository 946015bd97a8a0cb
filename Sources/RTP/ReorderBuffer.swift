/// Packets that came before one that is still missing, found by sequence number.
///
/// A window of a fixed number of places, each for one packet of a fixed size; all memory is taken at the start.
struct ReorderBuffer: ~Copyable {
  /// How many sequence numbers the window spans, a power of two.
  let capacity: Int
  /// The largest packet that is held.
  let packetBytes: Int
  /// The sequence number that is to be delivered next.
  private(set) var head: UInt16 = 0
  /// One more than the highest sequence number that came; ``head`` where nothing is waited for.
  private(set) var end: UInt16 = 0

  private let memory: UnsafeMutableRawPointer
  /// Bytes of the packet at each place; 0 for none.
  private let counts: UnsafeMutablePointer<Int>

  /// A buffer of `packets` packets, rounded up to a power of two between 16 and 16,384.
  init(packets: Int, packetBytes: Int) {
    var capacity = 16
    while capacity < min(packets, 1 << 14) { capacity *= 2 }
    self.capacity = capacity
    self.packetBytes = packetBytes
    memory = .allocate(byteCount: capacity * packetBytes, alignment: 16)
    counts = .allocate(capacity: capacity)
    counts.initialize(repeating: 0, count: capacity)
  }

  deinit {
    counts.deallocate()
    memory.deallocate()
  }

  /// The memory that it has, in bytes; always the same.
  var memoryBytes: Int { capacity * (packetBytes + MemoryLayout<Int>.stride) }

  /// How many sequence numbers lie between ``head`` and ``end``.
  var span: Int { Int(end &- head) }

  /// Forgets everything; `sequenceNumber` is to be delivered next.
  mutating func restart(at sequenceNumber: UInt16) {
    counts.update(repeating: 0, count: capacity)
    head = sequenceNumber
    end = sequenceNumber
  }

  /// Whether the packet is held; `sequenceNumber` lies within the window.
  func holds(_ sequenceNumber: UInt16) -> Bool { counts[place(sequenceNumber)] > 0 }

  /// Moves ``end`` to one after `sequenceNumber`, which lies within the window.
  mutating func extend(to sequenceNumber: UInt16) {
    assert(Int(sequenceNumber &- head) < capacity)
    end = sequenceNumber &+ 1
  }

  /// Copies a packet of at most ``packetBytes``, which lies between ``head`` and ``end``.
  mutating func hold(_ sequenceNumber: UInt16, _ packet: UnsafeRawBufferPointer) {
    precondition(packet.count <= packetBytes, "a packet beyond its place")
    let place = place(sequenceNumber)
    UnsafeMutableRawBufferPointer(start: memory + place * packetBytes, count: packetBytes).copyMemory(from: packet)
    counts[place] = packet.count
  }

  /// Moves ``head`` on by one; returns its packet if it was held, valid until the next is held.
  mutating func advance() -> UnsafeRawBufferPointer? {
    let place = place(head)
    let count = counts[place]
    counts[place] = 0
    if head == end { end &+= 1 }
    head &+= 1
    return count > 0 ? UnsafeRawBufferPointer(start: memory + place * packetBytes, count: count) : nil
  }

  private func place(_ sequenceNumber: UInt16) -> Int { Int(sequenceNumber) & (capacity - 1) }
}
