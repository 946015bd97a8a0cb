import Glibc

/// A part of a driver's memory, mapped into this process until the value ends.
struct MappedMemory: ~Copyable {
  /// The start of the memory.
  let base: UnsafeMutablePointer<UInt8>
  /// The length in bytes.
  let byteCount: Int

  /// Maps `byteCount` bytes at `offset` of a device. Returns nil and sets `errno` if that fails.
  init?(descriptor: CInt, offset: UInt32, byteCount: Int) {
    // Writable because libv4lconvert unpacks some sensors' pictures in place.
    let mapped = mmap(nil, byteCount, PROT_READ | PROT_WRITE, MAP_SHARED, descriptor, off_t(offset))
    guard let mapped, mapped != MAP_FAILED else { return nil }
    base = mapped.assumingMemoryBound(to: UInt8.self)
    self.byteCount = byteCount
  }

  deinit {
    munmap(base, byteCount)
  }
}
