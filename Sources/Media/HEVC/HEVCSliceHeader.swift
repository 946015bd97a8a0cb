/// The beginning of a slice segment header of HEVC (ITU-T H.265 clause 7.3.6.1): the fields that tell pictures and their
/// references apart.
public struct HEVCSliceHeader: Hashable, Sendable {
  /// `slice_type`, table 7-7.
  public enum SliceType: Int, Hashable, Sendable {
    /// A slice with up to two references a block.
    case bidirectional = 0
    /// A slice with one reference a block.
    case predicted = 1
    /// A slice without references.
    case intra = 2
  }

  /// A reference to a picture.
  public struct Reference: Hashable, Sendable {
    /// The picture order count: the difference to that of this picture; of a long-term reference its least bits, or with
    /// ``isWhole`` the difference.
    public var orderCount: Int
    /// `true` if this picture refers to it; `false` if only later ones do.
    public var isUsed: Bool
    /// `true` if ``orderCount`` names a picture alone; `false` if it is the least bits of a long-term reference.
    public var isWhole: Bool
  }

  /// The NAL unit header.
  public let header: HEVCNALUnitHeader
  /// `first_slice_segment_in_pic_flag`: a picture begins here.
  public let isFirst: Bool
  /// `slice_pic_parameter_set_id`, 0…63.
  public let pictureParameterSet: Int
  /// `slice_segment_address`: the first coding tree block, in the order of the raster.
  public let address: Int
  /// `dependent_slice_segment_flag`: the fields below are those of the slice segment before.
  public let isDependent: Bool
  /// `slice_type`; nil for a dependent slice segment.
  public private(set) var type: SliceType?
  /// `slice_pic_order_cnt_lsb`; 0 for IDR pictures and dependent slice segments.
  public private(set) var orderCount = 0
  /// The reference picture sets, at most 48 pictures; empty for IDR pictures and dependent slice segments.
  public private(set) var references: [Reference] = []

  /// The bytes in which the fields are looked for: the longest references have some 200.
  private static let lengthLimit = 512

  /// Reads the fields from a slice segment's NAL unit of the base layer, with the parameter sets that it names.
  ///
  /// - Throws: ``ParameterSetError`` where the header is truncated or a value is impossible.
  public init(
    _ unit: NALUnit, picture: HEVCPictureParameterSet, sequence: HEVCSequenceParameterSet
  ) throws(ParameterSetError) {
    var reader: BitReader
    (header, isFirst, pictureParameterSet, reader) = try Self.readBeginning(unit)
    var isDependent = false
    var address = 0
    if !isFirst {
      if picture.hasDependentSlices { isDependent = try reader.flag() }
      // As many bits as the last address needs.
      let blocks = sequence.codingTreeBlocks
      address = Int(try reader.bits(Int.bitWidth - (blocks - 1).leadingZeroBitCount))
      guard address > 0, address < blocks else { throw .value("slice_segment_address") }
    }
    (self.isDependent, self.address) = (isDependent, address)
    guard !isDependent else { return }
    try reader.skip(picture.extraHeaderBits)
    guard let type = SliceType(rawValue: Int(try reader.unsigned())) else { throw .value("slice_type") }
    self.type = type
    if picture.hasOutputFlag { _ = try reader.flag() }
    if sequence.hasSeparatePlanes { _ = try reader.bits(2) }
    guard !header.type.isIDR else { return }
    try readReferences(&reader, sequence)
  }

  /// Reads `first_slice_segment_in_pic_flag`, which needs no parameter set; nil where the NAL unit is shorter.
  public static func isFirst(_ unit: NALUnit) -> Bool? {
    guard unit.bytes.count > HEVCNALUnitHeader.byteCount else { return nil }
    return unit.bytes[HEVCNALUnitHeader.byteCount] & 0x80 != 0
  }

  /// Reads `slice_pic_parameter_set_id`, which needs no parameter set; nil where it is missing or impossible.
  public static func pictureParameterSet(of unit: NALUnit) -> Int? { (try? readBeginning(unit))?.picture }

  private static func readBeginning(
    _ unit: NALUnit
  ) throws(ParameterSetError) -> (header: HEVCNALUnitHeader, isFirst: Bool, picture: Int, reader: BitReader) {
    guard let header = HEVCNALUnitHeader(unit), header.type.isSlice else { throw .value("slice NAL unit") }
    var reader = BitReader(
      RawByteSequencePayload.removingEmulationPrevention(
        unit.bytes.dropFirst(HEVCNALUnitHeader.byteCount).prefix(lengthLimit)))
    let isFirst = try reader.flag()
    if header.type.isKeyFrame { _ = try reader.flag() }  // no_output_of_prior_pics_flag
    return (header, isFirst, try reader.unsigned(to: 63, "slice_pic_parameter_set_id"), reader)
  }

  private mutating func readReferences(
    _ reader: inout BitReader, _ sequence: HEVCSequenceParameterSet
  ) throws(ParameterSetError) {
    orderCount = Int(try reader.bits(sequence.orderCountBits))
    let sets = sequence.referenceSets
    let set: HEVCReferencePictureSet
    if try !reader.flag() {  // short_term_ref_pic_set_sps_flag
      set = try HEVCReferencePictureSet(&reader, index: sets.count, among: sets, isInSlice: true)
    } else {
      guard !sets.isEmpty else { throw .value("short_term_ref_pic_set_idx") }
      let index = Int(try reader.bits(Int.bitWidth - (sets.count - 1).leadingZeroBitCount))
      guard index < sets.count else { throw .value("short_term_ref_pic_set_idx") }
      set = sets[index]
    }
    references = set.entries.map { Reference(orderCount: $0.delta, isUsed: $0.isUsed, isWhole: true) }
    if sequence.hasLongTermReferences { try readLongTermReferences(&reader, sequence) }
  }

  private mutating func readLongTermReferences(
    _ reader: inout BitReader, _ sequence: HEVCSequenceParameterSet
  ) throws(ParameterSetError) {
    let candidates = sequence.longTermReferences
    let listed = candidates.isEmpty ? 0 : try reader.unsigned(to: UInt32(candidates.count), "num_long_term_sps")
    let own = try reader.unsigned(to: 32, "num_long_term_pics")
    guard listed + own <= 32 else { throw .value("number of long-term references") }
    var cycles = 0
    for index in 0..<listed + own {
      let lsb: Int
      let isUsed: Bool
      if index < listed {
        let entry = Int(try reader.bits(Int.bitWidth - (candidates.count - 1).leadingZeroBitCount))
        guard entry < candidates.count else { throw .value("lt_idx_sps") }
        (lsb, isUsed) = candidates[entry]
      } else {
        (lsb, isUsed) = (Int(try reader.bits(sequence.orderCountBits)), try reader.flag())
      }
      // Of each of both kinds, a number is the sum of those before it, clause 7.4.7.1.
      if index == 0 || index == listed { cycles = 0 }
      guard try reader.flag() else {  // delta_poc_msb_present_flag
        references.append(Reference(orderCount: lsb, isUsed: isUsed, isWhole: false))
        continue
      }
      cycles += try reader.unsigned(to: 1 << 28, "delta_poc_msb_cycle_lt")
      let difference = lsb - orderCount - cycles << sequence.orderCountBits
      references.append(Reference(orderCount: difference, isUsed: isUsed, isWhole: true))
    }
  }
}
