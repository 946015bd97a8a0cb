/// Bytes in memory of its own, appended one after the other and forgotten all at once.
///
/// The memory grows when it must and never shrinks, so that a stream allocates only while its access units
/// still get larger. What was appended is named by its offset: an address moves when the memory grows.
public struct ByteArena: ~Copyable {
  /// Bytes appended since the last ``removeAll()``.
  public private(set) var count = 0
  /// Bytes that fit before the memory must grow.
  public private(set) var capacity: Int
  private var memory: UnsafeMutableRawPointer

  /// An empty arena with room for `capacity` bytes.
  public init(capacity: Int) {
    self.capacity = max(capacity, 64)
    memory = .allocate(byteCount: self.capacity, alignment: 16)
  }

  deinit {
    memory.deallocate()
  }

  /// The bytes appended so far; valid until something is appended.
  public var bytes: UnsafeRawBufferPointer { UnsafeRawBufferPointer(start: memory, count: count) }

  /// Forgets the bytes and keeps the memory.
  public mutating func removeAll() {
    count = 0
  }

  /// The address of the byte at `offset`; valid until something is appended.
  func address(of offset: Int) -> UnsafeMutableRawPointer {
    assert(offset >= 0 && offset <= count)
    return memory + offset
  }

  /// Makes room for `length` more bytes, so that appending that many moves nothing.
  mutating func reserve(_ length: Int) {
    if capacity - count < length { grow(by: length) }
  }

  /// Appends `length` uninitialized bytes, which the caller fills, and returns the offset of the first.
  mutating func extend(by length: Int) -> Int {
    reserve(length)
    let offset = count
    count += length
    return offset
  }

  private mutating func grow(by length: Int) {
    let larger = max(capacity * 2, count + length)
    let moved = UnsafeMutableRawPointer.allocate(byteCount: larger, alignment: 16)
    moved.copyMemory(from: memory, byteCount: count)
    memory.deallocate()
    memory = moved
    capacity = larger
  }
}
