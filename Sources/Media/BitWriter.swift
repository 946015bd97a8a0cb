/// Writes the descriptors of ITU-T H.264 clause 7.2 as the bytes of a NAL unit, with emulation prevention (clause
/// 7.4.1.1) as it goes. Its memory is kept by ``begin(header:)``, so that a header a frame costs no allocation.
public struct BitWriter: Sendable {
  /// The whole bytes so far, start code included; an unfinished one is not among them.
  public private(set) var bytes: [UInt8] = []
  private var pending: UInt8 = 0
  private var pendingBits = 0
  private var emulationPrevention = EmulationPrevention()

  /// An empty writer with room for `capacity` bytes.
  public init(capacity: Int = 256) {
    bytes.reserveCapacity(capacity)
  }

  /// Forgets what was written.
  public mutating func reset() {
    bytes.removeAll(keepingCapacity: true)
    (pending, pendingBits) = (0, 0)
    emulationPrevention = EmulationPrevention()
  }

  /// Starts a NAL unit with a four-byte start code and `header`, the byte of `nal_ref_idc` and `nal_unit_type`. The
  /// one before it must have ended with ``trailingBits()``.
  public mutating func begin(header: UInt8) {
    precondition(pendingBits == 0, "the NAL unit before is unfinished")
    bytes.append(contentsOf: AnnexB.startCode)
    bytes.append(header)
    emulationPrevention = EmulationPrevention()
  }

  /// The bits written, start codes and emulation prevention included, an unfinished byte's own bits too.
  public var bitCount: Int { bytes.count * 8 + pendingBits }

  /// `u(1)`.
  public mutating func flag(_ value: Bool) {
    pending = pending << 1 | (value ? 1 : 0)
    pendingBits += 1
    guard pendingBits == 8 else { return }
    emulationPrevention.append(pending, to: &bytes)
    (pending, pendingBits) = (0, 0)
  }

  /// `u(n)`, at most 32 bits, highest bit first.
  public mutating func bits(_ value: UInt32, _ count: Int) {
    for bit in stride(from: count - 1, through: 0, by: -1) { flag(value >> UInt32(bit) & 1 == 1) }
  }

  /// `ue(v)`; the code of `UInt32.max` does not exist.
  public mutating func unsigned(_ value: UInt32) {
    precondition(value < .max, "no exponential-Golomb code")
    let length = UInt32.bitWidth - (value + 1).leadingZeroBitCount
    bits(0, length - 1)
    bits(value + 1, length)
  }

  /// `se(v)`.
  public mutating func signed(_ value: Int32) {
    unsigned(value > 0 ? UInt32(value) * 2 - 1 : value.magnitude * 2)
  }

  /// `rbsp_trailing_bits()`: a one, and zeros up to the byte's end.
  public mutating func trailingBits() {
    flag(true)
    while pendingBits != 0 { flag(false) }
  }

  /// Puts the unfinished byte, filled up with zeros, behind the whole ones: for a header whose NAL unit somebody else
  /// goes on writing, and who is told ``bitCount`` as it was before. Nothing may be written afterwards.
  ///
  /// No emulation prevention is put before that byte, since it is not known yet: the header must end in a one, as a
  /// slice header with the deblocking filter's fields does, and then none is needed.
  public mutating func padUnfinishedByte() {
    guard pendingBits > 0 else { return }
    bytes.append(pending << UInt8(8 - pendingBits))
    (pending, pendingBits) = (0, 0)
  }
}
