extension UnsafeMutableRawPointer {
  /// Writes `value` in network byte order at `offset`, which needs no alignment.
  @inline(__always)
  func storeBigEndian<Value: FixedWidthInteger & BitwiseCopyable>(_ value: Value, at offset: Int) {
    storeBytes(of: value.bigEndian, toByteOffset: offset, as: Value.self)
  }
}

extension UnsafeRawBufferPointer {
  /// Returns the number in network byte order at `offset`, or `nil` if it does not lie within the bytes.
  @inline(__always)
  func bigEndian<Value: FixedWidthInteger & BitwiseCopyable>(_ type: Value.Type, at offset: Int) -> Value? {
    guard offset >= 0, offset <= count - MemoryLayout<Value>.size else { return nil }
    return Value(bigEndian: loadUnaligned(fromByteOffset: offset, as: Value.self))
  }
}
