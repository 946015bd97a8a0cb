extension PictureParameterSet {
  /// Parses a PPS NAL unit of any stream, header byte first (ITU-T H.264 clause 7.3.2.2). `chromaFormatIDC` is the
  /// SPS's, on which the number of scaling lists depends.
  ///
  /// - Throws: ``ParameterSetError`` for invalid data.
  public init(nalUnit: [UInt8], chromaFormatIDC: UInt8 = 1) throws(ParameterSetError) {
    guard let header = nalUnit.first, header & 0x1f == 8, nalUnit.count <= ParameterSets.lengthLimit else {
      throw .notPictureParameterSet
    }
    var reader = BitReader(RawByteSequencePayload.removingEmulationPrevention(nalUnit.dropFirst()))
    let identifier = try reader.unsigned(to: 255, "pic_parameter_set_id")
    let sequence = try reader.unsigned(to: 31, "seq_parameter_set_id")
    self.init(profile: .baseline)
    self.identifier = identifier
    sequenceParameterSet = sequence
    usesCABAC = try reader.flag()
    _ = try reader.flag()  // bottom_field_pic_order_in_frame_present_flag
    try Self.skipSliceGroups(&reader)
    let references = (try reader.unsigned(), try reader.unsigned())
    guard references.0 <= 31, references.1 <= 31 else { throw .value("number of reference indices") }
    _ = try reader.flag()  // weighted_pred_flag
    guard try reader.bits(2) <= 2 else { throw .value("weighted_bipred_idc") }
    let quantizer = try reader.signed()
    guard (-26...25).contains(quantizer) else { throw .value("pic_init_qp_minus26") }
    initialQuantizer = 26 + Int(quantizer)
    guard (-26...25).contains(try reader.signed()) else { throw .value("pic_init_qs_minus26") }
    guard (-12...12).contains(try reader.signed()) else { throw .value("chroma_qp_index_offset") }
    _ = try reader.bits(3)  // deblocking control, constrained intra prediction, redundant pictures
    guard reader.hasMoreData else { return }
    uses8x8Transform = try reader.flag()
    if try reader.flag() {  // pic_scaling_matrix_present_flag
      let lists = 6 + (uses8x8Transform ? (chromaFormatIDC == 3 ? 6 : 2) : 0)
      for list in 0..<lists where try reader.flag() { try reader.skipScalingList(list < 6 ? 16 : 64) }
    }
    guard (-12...12).contains(try reader.signed()) else { throw .value("second_chroma_qp_index_offset") }
  }

  /// Returns the `pic_parameter_set_id` of a PPS NAL unit, header byte first. Slices refer to the PPS by it.
  ///
  /// - Throws: ``ParameterSetError`` for invalid data.
  public static func identifier(nalUnit: [UInt8]) throws(ParameterSetError) -> Int {
    guard let header = nalUnit.first, header & 0x1f == 8 else { throw .notPictureParameterSet }
    // One code of at most 63 bits, with emulation prevention.
    var reader = BitReader(RawByteSequencePayload.removingEmulationPrevention(nalUnit.dropFirst().prefix(16)))
    return try reader.unsigned(to: 255, "pic_parameter_set_id")
  }

  /// Skips `num_slice_groups_minus1` and the fields that depend on it.
  private static func skipSliceGroups(_ reader: inout BitReader) throws(ParameterSetError) {
    let groups = try reader.unsigned(to: 7, "num_slice_groups_minus1")
    guard groups > 0 else { return }
    switch try reader.unsigned() {  // slice_group_map_type
    case 0:
      for _ in 0...groups { _ = try reader.unsigned() }
    case 1: break
    case 2:
      for _ in 0..<groups {
        _ = try reader.unsigned()
        _ = try reader.unsigned()
      }
    case 3, 4, 5:
      _ = try reader.flag()
      _ = try reader.unsigned()
    case 6:
      // The map's entries take bits of the set, whose length is limited, so no count can be too large.
      let bits = Int.bitWidth - groups.leadingZeroBitCount
      let units = try reader.unsigned()
      for _ in 0...UInt64(units) { _ = try reader.bits(bits) }
    default: throw .value("slice_group_map_type")
    }
  }
}
