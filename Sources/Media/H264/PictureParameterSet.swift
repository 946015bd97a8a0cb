/// A picture parameter set (ITU-T H.264 clause 7.3.2.2) of a stream with one reference, without fields and without
/// weighted prediction.
public struct PictureParameterSet: Hashable, Sendable {
  /// `pic_parameter_set_id`, 0…255.
  public var identifier = 0
  /// `seq_parameter_set_id`, 0…31.
  public var sequenceParameterSet = 0
  /// `entropy_coding_mode_flag`: CABAC instead of CAVLC.
  public var usesCABAC: Bool
  /// `transform_8x8_mode_flag`.
  public var uses8x8Transform: Bool
  /// `pic_init_qp_minus26` + 26, 0…51: the base of the slice headers' quantizers.
  public var initialQuantizer: Int

  /// Creates a PPS with every feature that `profile` allows and its decoders therefore support.
  public init(profile: H264Profile, initialQuantizer: Int = 26) {
    usesCABAC = profile != .baseline
    uses8x8Transform = profile == .high
    self.initialQuantizer = initialQuantizer
  }

  /// Writes the PPS with its start code.
  public func write(to writer: inout BitWriter) {
    writer.begin(header: 0x68)
    writer.unsigned(UInt32(identifier))
    writer.unsigned(UInt32(sequenceParameterSet))
    writer.flag(usesCABAC)
    writer.flag(false)  // bottom_field_pic_order_in_frame_present_flag
    writer.unsigned(0)  // num_slice_groups_minus1
    writer.unsigned(0)  // num_ref_idx_l0_default_active_minus1
    writer.unsigned(0)  // num_ref_idx_l1_default_active_minus1
    writer.flag(false)  // weighted_pred_flag
    writer.bits(0, 2)  // weighted_bipred_idc
    writer.signed(Int32(initialQuantizer) - 26)
    writer.signed(0)  // pic_init_qs_minus26
    writer.signed(0)  // chroma_qp_index_offset
    writer.flag(true)  // deblocking_filter_control_present_flag
    writer.flag(false)  // constrained_intra_pred_flag
    writer.flag(false)  // redundant_pic_cnt_present_flag
    if uses8x8Transform {
      writer.flag(true)
      writer.flag(false)  // pic_scaling_matrix_present_flag
      writer.signed(0)  // second_chroma_qp_index_offset
    }
    writer.trailingBits()
  }
}
