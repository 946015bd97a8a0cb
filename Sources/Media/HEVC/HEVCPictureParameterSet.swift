/// A parsed picture parameter set of HEVC (ITU-T H.265 clause 7.3.2.3), with the fields that a receiver needs.
public struct HEVCPictureParameterSet: Hashable, Sendable {
  /// `pps_pic_parameter_set_id`, 0…63.
  public let identifier: UInt8
  /// `pps_seq_parameter_set_id`, 0…15.
  public let sequenceParameterSet: UInt8
  /// `tiles_enabled_flag`.
  public let hasTiles: Bool
  /// `entropy_coding_sync_enabled_flag`: rows of coding tree blocks can be decoded in parallel.
  public let hasWavefronts: Bool
  /// `init_qp_minus26` + 26.
  public let initialQuantizer: Int

  /// `dependent_slice_segments_enabled_flag`.
  let hasDependentSlices: Bool
  /// `output_flag_present_flag`.
  let hasOutputFlag: Bool
  /// `num_extra_slice_header_bits`, 0…2 and reserved up to 7.
  let extraHeaderBits: Int

  /// Reads `pps_pic_parameter_set_id` alone; nil where it is missing or impossible.
  package static func identifier(nalUnit: [UInt8]) -> Int? {
    guard var reader = try? HEVCParameterSetReading.reader(nalUnit, .picture) else { return nil }
    return try? reader.unsigned(to: 63, "pps_pic_parameter_set_id")
  }

  /// Parses a PPS NAL unit of the base layer, header first, up to the flags of tiles and wavefronts.
  ///
  /// - Throws: ``ParameterSetError`` for invalid data.
  public init(nalUnit: [UInt8]) throws(ParameterSetError) {
    var reader = try HEVCParameterSetReading.reader(nalUnit, .picture)
    identifier = UInt8(try reader.unsigned(to: 63, "pps_pic_parameter_set_id"))
    sequenceParameterSet = UInt8(try reader.unsigned(to: 15, "pps_seq_parameter_set_id"))
    hasDependentSlices = try reader.flag()
    hasOutputFlag = try reader.flag()
    extraHeaderBits = Int(try reader.bits(3))
    _ = try reader.bits(2)  // sign_data_hiding_enabled_flag, cabac_init_present_flag
    _ = try reader.unsigned(to: 14, "num_ref_idx_l0_default_active_minus1")
    _ = try reader.unsigned(to: 14, "num_ref_idx_l1_default_active_minus1")
    let quantizer = try reader.signed()
    // Down to −(26 + QpBdOffset), whose offset is at most 48.
    guard (-74...25).contains(quantizer) else { throw .value("init_qp_minus26") }
    initialQuantizer = 26 + Int(quantizer)
    _ = try reader.bits(2)  // constrained_intra_pred_flag, transform_skip_enabled_flag
    if try reader.flag() { _ = try reader.unsigned(to: 3, "diff_cu_qp_delta_depth") }
    for _ in 0..<2 {
      guard (-12...12).contains(try reader.signed()) else { throw .value("chroma quantizer offset") }
    }
    _ = try reader.bits(4)  // slice offsets, weighted prediction of both kinds, transquant bypass
    hasTiles = try reader.flag()
    hasWavefronts = try reader.flag()
  }
}
