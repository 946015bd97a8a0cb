/// A writer of the descriptors of ITU-T H.264 and H.265, clause 7.2 of both, into a NAL unit's bytes, with emulation prevention (clause
/// 7.4.1.1). ``begin(header:)`` keeps the writer's memory, so that a header for each frame costs no allocation.
public struct BitWriter: Sendable {
  /// The whole bytes so far, start code included, without an unfinished byte.
  public private(set) var bytes: [UInt8] = []
  private var pending: UInt8 = 0
  private var pendingBits = 0
  private var emulationPrevention = EmulationPrevention()

  /// Creates an empty writer with room for `capacity` bytes.
  public init(capacity: Int = 256) {
    bytes.reserveCapacity(capacity)
  }

  /// Removes everything written so far.
  public mutating func reset() {
    bytes.removeAll(keepingCapacity: true)
    (pending, pendingBits) = (0, 0)
    emulationPrevention = EmulationPrevention()
  }

  /// Begins a NAL unit with a four-byte start code and `header`, the byte of `nal_ref_idc` and `nal_unit_type`. The
  /// previous NAL unit must have ended with ``trailingBits()``.
  public mutating func begin(header: UInt8) {
    precondition(pendingBits == 0, "the NAL unit before is unfinished")
    bytes.append(contentsOf: AnnexB.startCode)
    bytes.append(header)
    emulationPrevention = EmulationPrevention()
  }

  /// The number of bits written, including start codes, emulation prevention and the bits of an unfinished byte.
  public var bitCount: Int { bytes.count * 8 + pendingBits }

  /// Writes `u(1)`.
  public mutating func flag(_ value: Bool) {
    pending = pending << 1 | (value ? 1 : 0)
    pendingBits += 1
    guard pendingBits == 8 else { return }
    emulationPrevention.append(pending, to: &bytes)
    (pending, pendingBits) = (0, 0)
  }

  /// Writes `u(n)`, at most 32 bits, highest bit first.
  public mutating func bits(_ value: UInt32, _ count: Int) {
    for bit in stride(from: count - 1, through: 0, by: -1) { flag(value >> UInt32(bit) & 1 == 1) }
  }

  /// Writes `ue(v)`; `UInt32.max` has no code.
  public mutating func unsigned(_ value: UInt32) {
    precondition(value < .max, "no exponential-Golomb code")
    let length = UInt32.bitWidth - (value + 1).leadingZeroBitCount
    bits(0, length - 1)
    bits(value + 1, length)
  }

  /// Writes `se(v)`.
  public mutating func signed(_ value: Int32) {
    unsigned(value > 0 ? UInt32(value) * 2 - 1 : value.magnitude * 2)
  }

  /// Writes `rbsp_trailing_bits()`: a one, and zeros up to the byte's end.
  public mutating func trailingBits() {
    flag(true)
    while pendingBits != 0 { flag(false) }
  }

  /// Appends the unfinished byte, filled up with zeros, to the whole bytes. It serves a header whose NAL unit another
  /// writer continues; that writer gets the earlier ``bitCount``. Nothing may be written afterwards.
  ///
  /// No emulation prevention precedes that byte, because its final value is not known yet. The header must end in a
  /// one, as a slice header with the deblocking filter's fields does; then none is needed.
  public mutating func padUnfinishedByte() {
    guard pendingBits > 0 else { return }
    bytes.append(pending << UInt8(8 - pendingBits))
    (pending, pendingBits) = (0, 0)
  }
}
