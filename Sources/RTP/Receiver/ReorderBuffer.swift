/// The packets that came before an earlier one that is still missing, found by sequence number.
///
/// The buffer is a window of a fixed number of places, each for one packet of a fixed size. It allocates all memory
/// at creation.
struct ReorderBuffer: ~Copyable {
  /// The number of sequence numbers in the window, a power of two.
  let capacity: Int
  /// The maximum size of a held packet in bytes.
  let packetBytes: Int
  /// The next sequence number to deliver.
  private(set) var head: UInt16 = 0
  /// One more than the highest sequence number received; equal to ``head`` if no packet is awaited.
  private(set) var end: UInt16 = 0

  private let memory: UnsafeMutableRawPointer
  /// The size of the packet at each place in bytes; 0 for none.
  private let counts: UnsafeMutablePointer<Int>

  /// Creates a buffer of `packets` packets, rounded up to a power of two between 16 and 16,384.
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

  /// The buffer's memory in bytes, a constant.
  var memoryBytes: Int { capacity * (packetBytes + MemoryLayout<Int>.stride) }

  /// The number of sequence numbers between ``head`` and ``end``.
  var span: Int { Int(end &- head) }

  /// Discards all packets; `sequenceNumber` is the next to deliver.
  mutating func restart(at sequenceNumber: UInt16) {
    counts.update(repeating: 0, count: capacity)
    head = sequenceNumber
    end = sequenceNumber
  }

  /// Returns `true` if the packet is held; `sequenceNumber` lies within the window.
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

  /// Advances ``head`` by one. Returns its packet if it was held, valid until the next is held.
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
