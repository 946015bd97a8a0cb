/// USB's byte order.
extension [UInt8] {
  /// Appends `value`, low byte first.
  mutating func append(_ value: some FixedWidthInteger, bytes count: Int) {
    for index in 0..<count { append(UInt8(truncatingIfNeeded: value >> (8 * index))) }
  }

  /// The number in `count` bytes at `offset`, low byte first; nil where they are not all there.
  func number(at offset: Int, bytes count: Int) -> Int? {
    guard offset >= 0, offset + count <= self.count else { return nil }
    return self[offset..<(offset + count)].reversed().reduce(0) { $0 << 8 | Int($1) }
  }
}
