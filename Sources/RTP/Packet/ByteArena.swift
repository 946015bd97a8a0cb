/// A memory region that bytes are appended to, one after the other, and that is emptied all at once.
///
/// The memory grows when necessary and never shrinks, so that a stream allocates only while its access units get
/// larger. Offsets name the appended bytes, because an address changes when the memory grows.
public struct ByteArena: ~Copyable {
  /// The number of bytes appended since the last ``removeAll()``.
  public private(set) var count = 0
  /// The number of bytes that fit before the memory must grow.
  public private(set) var capacity: Int
  private var memory: UnsafeMutableRawPointer

  /// Creates an empty arena with room for `capacity` bytes.
  public init(capacity: Int) {
    self.capacity = max(capacity, 64)
    memory = .allocate(byteCount: self.capacity, alignment: 16)
  }

  deinit {
    memory.deallocate()
  }

  /// The bytes appended so far; valid until the next append.
  public var bytes: UnsafeRawBufferPointer { UnsafeRawBufferPointer(start: memory, count: count) }

  /// Discards the bytes and keeps the memory.
  public mutating func removeAll() {
    count = 0
  }

  /// Returns the address of the byte at `offset`; valid until the next append.
  func address(of offset: Int) -> UnsafeMutableRawPointer {
    assert(offset >= 0 && offset <= count)
    return memory + offset
  }

  /// Makes room for `length` more bytes, so that appending that many does not move the memory.
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
