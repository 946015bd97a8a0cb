/// The header of an I or P slice (ITU-T H.264 clause 7.3.3) in a stream of ``SequenceParameters`` and
/// ``PictureParameterSet``: every picture is a reference, and a P picture refers to the one before it.
public struct SliceHeader: Hashable, Sendable {
  /// `first_mb_in_slice`.
  public var firstMacroblock: Int
  /// `true` for an IDR picture, whose slices are all I slices; otherwise they are P slices.
  public var isIDR: Bool
  /// `frame_num`.
  public var frameNumber: Int
  /// `idr_pic_id`, which differs between two IDR pictures in a row.
  public var idrPictureID: Int
  /// `pic_order_cnt_lsb`.
  public var orderCount: Int
  /// `slice_qp_delta`, relative to the PPS's initial quantizer.
  public var quantizerDelta: Int
  /// `true` if the PPS selects CABAC.
  public var usesCABAC: Bool
  /// `pic_parameter_set_id`.
  public var pictureParameterSet: Int

  /// Creates a header of these values.
  public init(
    firstMacroblock: Int, isIDR: Bool, frameNumber: Int, idrPictureID: Int, orderCount: Int, quantizerDelta: Int,
    usesCABAC: Bool, pictureParameterSet: Int = 0
  ) {
    self.firstMacroblock = firstMacroblock
    self.isIDR = isIDR
    self.frameNumber = frameNumber
    self.idrPictureID = idrPictureID
    self.orderCount = orderCount
    self.quantizerDelta = quantizerDelta
    self.usesCABAC = usesCABAC
    self.pictureParameterSet = pictureParameterSet
  }

  /// `slice_type` in VA-API's numbers: 0 is P, 2 is I.
  public var sliceType: UInt8 { isIDR ? 2 : 0 }

  /// Writes start code, NAL unit header and slice header; the slice's data must follow at ``BitWriter/bitCount``.
  public func write(to writer: inout BitWriter) {
    writer.begin(header: isIDR ? 0x65 : 0x41)
    writer.unsigned(UInt32(firstMacroblock))
    writer.unsigned(UInt32(sliceType) + 5)  // every slice of the picture is of this type
    writer.unsigned(UInt32(pictureParameterSet))
    writer.bits(UInt32(frameNumber), SequenceParameters.frameNumberBits)
    if isIDR { writer.unsigned(UInt32(idrPictureID)) }
    writer.bits(UInt32(orderCount), SequenceParameters.orderCountBits)
    if isIDR {
      writer.flag(false)  // no_output_of_prior_pics_flag
      writer.flag(false)  // long_term_reference_flag
    } else {
      writer.flag(false)  // num_ref_idx_active_override_flag
      writer.flag(false)  // ref_pic_list_modification_flag_l0
      writer.flag(false)  // adaptive_ref_pic_marking_mode_flag
      if usesCABAC { writer.unsigned(0) }  // cabac_init_idc
    }
    writer.signed(Int32(quantizerDelta))
    writer.unsigned(0)  // disable_deblocking_filter_idc
    writer.signed(0)  // slice_alpha_c0_offset_div2
    writer.signed(0)  // slice_beta_offset_div2
  }
}
