/// A reader of the fields at the beginning of a NAL unit (ITU-T H.264 clause 7.2), which steps over emulation prevention.
/// It allocates nothing, and reads as far as the NAL unit goes.
package struct HeaderBits {
  private let bytes: UnsafeRawBufferPointer
  /// The next byte, and the bits of it that were read.
  private var (position, used) = (1, 0)
  private var zeros = 0

  /// Creates a reader behind the header byte of `unit`.
  package init(_ unit: NALUnit) { bytes = unit.bytes }

  /// Reads `u(1)` as a flag; nil at the end.
  package mutating func flag() -> Bool? {
    if used == 0, zeros >= 2, position < bytes.count, bytes[position] == 3 {
      position += 1
      zeros = 0
    }
    guard position < bytes.count else { return nil }
    let byte = bytes[position]
    let bit = byte >> UInt8(7 - used) & 1
    used += 1
    if used == 8 {
      zeros = byte == 0 ? zeros + 1 : 0
      (position, used) = (position + 1, 0)
    }
    return bit == 1
  }

  /// Reads `u(n)`, at most 32 bits; nil at the end.
  package mutating func bits(_ count: Int) -> Int? {
    var value = 0
    for _ in 0..<count {
      guard let bit = flag() else { return nil }
      value = value << 1 | (bit ? 1 : 0)
    }
    return value
  }

  /// Reads `ue(v)`; nil at the end, and for more than 32 bits.
  package mutating func unsigned() -> Int? {
    var zeros = 0
    while let bit = flag() {
      if bit { return bits(zeros).map { (1 << zeros) - 1 + $0 } }
      zeros += 1
      guard zeros < 32 else { return nil }
    }
    return nil
  }

  /// Reads `se(v)`; nil at the end, and for more than 32 bits.
  package mutating func signed() -> Int? {
    guard let code = unsigned() else { return nil }
    return code.isMultiple(of: 2) ? -(code / 2) : (code + 1) / 2
  }

  /// Skips `scaling_list()` (clause 7.3.2.1.1.1) of `count` values; nil at the end.
  package mutating func skipScalingList(_ count: Int) -> Void? {
    var (last, next) = (8, 8)
    for _ in 0..<count {
      if next != 0 {
        guard let delta = signed() else { return nil }
        next = (last + delta + 256) & 255
      }
      last = next == 0 ? last : next
    }
    return ()
  }
}
