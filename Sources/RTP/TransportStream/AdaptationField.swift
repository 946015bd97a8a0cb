/// The contents of an adaptation field, ISO/IEC 13818-1 section 2.4.3.4.
struct AdaptationField {
  /// `true` if the time base restarts with this packet.
  var isDiscontinuous = false
  /// `true` if a decoder can start with the PES packet that begins here.
  var isRandomAccess = false
  /// The program clock in ticks of 27 MHz, below ``ProgramClock/period``.
  var clock: Int64?

  /// `true` if the field has no contents.
  var isEmpty: Bool { !isDiscontinuous && !isRandomAccess && clock == nil }

  /// The number of bytes that the field needs, its length byte included.
  var byteCount: Int { isEmpty ? 0 : 2 + (clock == nil ? 0 : 6) }

  /// Writes the field, stuffed to `count` bytes, at least ``byteCount``. A single byte is a length of zero.
  func write(to memory: UnsafeMutableRawPointer, count: Int) {
    guard count > 0 else { return }
    memory.storeBytes(of: UInt8(truncatingIfNeeded: count - 1), as: UInt8.self)
    guard count > 1 else { return }
    let flags: UInt8 = (isDiscontinuous ? 0x80 : 0) | (isRandomAccess ? 0x40 : 0) | (clock == nil ? 0 : 0x10)
    memory.storeBytes(of: flags, toByteOffset: 1, as: UInt8.self)
    var offset = 2
    if let clock {
      let (base, fraction) = clock.quotientAndRemainder(dividingBy: 300)
      // 33 bits of base, six reserved ones, nine bits of extension.
      let field = UInt64(truncatingIfNeeded: base) << 15 | 0x7e00 | UInt64(truncatingIfNeeded: fraction)
      memory.storeBigEndian(UInt32(truncatingIfNeeded: field >> 16), at: 2)
      memory.storeBigEndian(UInt16(truncatingIfNeeded: field), at: 6)
      offset = 8
    }
    (memory + offset).initializeMemory(as: UInt8.self, repeating: 0xff, count: count - offset)
  }
}
